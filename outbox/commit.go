package outbox

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// Commit keeps the record of a task, if one is named, and queues a notice, if
// there is one: both or neither. When it returns nil they are in the store. It
// waits while the thread has Depth entries that are not acknowledged, until ctx is
// done ([ErrFull]). The end of a task is queued once: a second one changes
// nothing, neither the queue nor the record.
//
// The values of a notice come back as JSON makes them: bytes as base64 text.
func (o *Outbox) Commit(ctx context.Context, thread, task string, record []byte, n *abi.Notice) error {
	c := Change{Thread: thread, Task: task, Record: record, At: o.cfg.Now()}
	if thread == "" {
		return fmt.Errorf("outbox: the thread is missing")
	}
	if n == nil {
		return o.keep(ctx, c)
	}
	data, err := json.Marshal(n)
	if err != nil {
		return wrap(thread, err)
	}
	if len(data) > o.cfg.MaxEntry {
		return wrap(thread, fmt.Errorf("notice of task %.80q: %w: %d bytes, at most %d are allowed", n.TaskID, ErrTooLarge, len(data), o.cfg.MaxEntry))
	}
	c.Data = data
	if ends(n.Kind) {
		c.Key = n.TaskID
	}
	if err := o.promise(ctx, thread); err != nil {
		return wrap(thread, err)
	}
	seq, err := o.cfg.Store.Append(ctx, c)
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.queue(thread)
	q.promised--
	if err != nil || seq == 0 {
		q.madeRoom()
		o.tidy(thread)
		return wrap(thread, err)
	}
	q.add(seq, n.Housekeeping)
	o.arrived(q)
	return nil
}

// keep keeps a record alone.
func (o *Outbox) keep(ctx context.Context, c Change) error {
	o.mu.Lock()
	closed := o.closed
	o.mu.Unlock()
	if closed {
		return ErrClosed
	}
	_, err := o.cfg.Store.Append(ctx, c)
	return wrap(c.Thread, err)
}

// promise takes room for one entry.
func (o *Outbox) promise(ctx context.Context, thread string) error {
	for {
		o.mu.Lock()
		q := o.queue(thread)
		if o.closed {
			o.mu.Unlock()
			return ErrClosed
		}
		if q.waiting() < o.cfg.Depth {
			q.promised++
			o.mu.Unlock()
			return nil
		}
		room := q.room
		o.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return fmt.Errorf("%w: %d entries are not acknowledged: %w", ErrFull, o.cfg.Depth, context.Cause(ctx))
		}
	}
}

// Waiting is how many entries of a thread are not acknowledged.
func (o *Outbox) Waiting(thread string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	if q := o.queues[thread]; q != nil {
		return q.waiting()
	}
	return 0
}

func ends(kind abi.NoticeKind) bool {
	return kind == abi.NoticeCompleted || kind == abi.NoticeFailed || kind == abi.NoticeCancelled
}

// decodeNotice reads what Commit wrote.
func decodeNotice(data []byte) (abi.Notice, error) {
	var n abi.Notice
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	if err := dec.Decode(&n); err != nil {
		return abi.Notice{}, fmt.Errorf("notice: %w", err)
	}
	n.Payload, n.Result = numbers(n.Payload), numbers(n.Result)
	for i := range n.Messages {
		m := &n.Messages[i]
		for k, v := range m.Metadata {
			m.Metadata[k] = numbers(v)
		}
		for j := range m.ToolCalls {
			m.ToolCalls[j].Arguments = numbers(m.ToolCalls[j].Arguments)
		}
	}
	return n, nil
}

// numbers replaces json.Number by int64 or float64, in place.
func numbers(v any) any {
	switch x := v.(type) {
	case json.Number:
		if i, err := x.Int64(); err == nil {
			return i
		}
		if f, err := x.Float64(); err == nil {
			return f
		}
		return x.String()
	case map[string]any:
		for k, e := range x {
			x[k] = numbers(e)
		}
	case []any:
		for i, e := range x {
			x[i] = numbers(e)
		}
	}
	return v
}
