package inbox

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
)

// Commit keeps the record of a task, if there is one, and queues a notification, if
// there is one: both or neither. When it returns nil they are in the store. It fails with [ErrFull]
// while the thread has Depth entries that are not acknowledged. A notification for which a task is named
// is queued only while the thread has a record of the task, and else fails with [ErrDropped]: the thread was
// dropped. The end of a task is queued once: a second one changes
// nothing, neither the queue nor the record.
//
// The values of a notification come back as JSON makes them: bytes as base64 text.
func (o *Inbox) Commit(ctx context.Context, thread, task string, record []byte, n *abi.Notice) error {
	if thread == "" {
		return errors.New("inbox: the thread is missing")
	}
	c := &change{thread: thread, task: task, record: record, at: o.cfg.Now()}
	if n == nil {
		return wrap(thread, o.keep(ctx, c))
	}
	data, err := json.Marshal(n)
	if err != nil {
		return wrap(thread, err)
	}
	if len(data) > o.cfg.MaxEntry {
		return wrap(thread, fmt.Errorf("task %.80q: %w: %d bytes, at most %d are allowed", n.TaskID, ErrTooLarge, len(data), o.cfg.MaxEntry))
	}
	c.data = data
	if ends(n.Kind) {
		c.key = n.TaskID
	}
	return wrap(thread, o.enqueue(ctx, c, n.Housekeeping))
}

// Claim replaces the record of a task if it is still the one that the caller read, and reports whether it was. Of several
// processes that take over a task of one that has ended, one succeeds.
func (o *Inbox) Claim(ctx context.Context, thread, task string, was, record []byte) (bool, error) {
	ok, err := o.stored.claim(ctx, &change{thread: thread, task: task, record: record}, was)
	return ok, wrap(thread, err)
}

// enqueue appends an entry when there is room.
func (o *Inbox) enqueue(ctx context.Context, c *change, quiet bool) error {
	if err := o.promise(c.thread); err != nil {
		return err
	}
	seq, err := o.stored.append(ctx, c)
	o.mu.Lock()
	q := o.queue(c.thread)
	q.promised--
	if err == nil && seq != 0 {
		q.open[seq] = hold{quiet: quiet}
	}
	o.settle(c.thread, q)
	o.mu.Unlock()
	if err == nil && seq == 0 { // an attempt before may have queued it and failed afterwards
		err = o.scan(ctx, c.thread, true, all)
	}
	return err
}

// keep keeps a record alone.
func (o *Inbox) keep(ctx context.Context, c *change) error {
	o.mu.Lock()
	closed := o.closed
	o.mu.Unlock()
	if closed {
		return ErrClosed
	}
	_, err := o.stored.append(ctx, c)
	return err
}

// promise takes room for one entry.
func (o *Inbox) promise(thread string) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	q := o.queue(thread)
	switch {
	case o.closed:
		return ErrClosed
	case q.waiting() >= o.cfg.Depth:
		return fmt.Errorf("%w: %d entries are not acknowledged", ErrFull, o.cfg.Depth)
	}
	q.promised++
	return nil
}

// Waiting is how many entries of a thread are not acknowledged.
func (o *Inbox) Waiting(thread string) int {
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
		return abi.Notice{}, fmt.Errorf("notification: %w", err)
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
