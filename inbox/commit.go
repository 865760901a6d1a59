package inbox

import (
	"bytes"
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/store"
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
	if n == nil {
		_, err := o.write(ctx, thread, task, record, nil, nil)
		return wrap(thread, err)
	}
	data, err := o.encode(n)
	if err == nil {
		err = o.promise(thread)
	}
	if err != nil {
		return wrap(thread, err)
	}
	seq, err := o.write(ctx, thread, task, record, n, data)
	o.mu.Lock()
	q := o.queue(thread)
	q.promised--
	if seq != 0 {
		q.open[seq] = hold{quiet: n.Housekeeping}
	}
	o.settle(thread, q)
	o.mu.Unlock()
	if err == nil && seq == 0 { // an attempt before may have queued it and failed afterwards
		return o.scan(ctx, thread, true, all)
	}
	return wrap(thread, err)
}

// write is the transition of Commit. Data is the notification, if there is one. The number of its entry is the
// thread's next revision, which no entry before had; it is 0 if nothing was queued.
func (o *Inbox) write(ctx context.Context, thread, task string, record []byte, n *abi.Notice, data []byte) (seq uint64, err error) {
	var q store.Query
	var once string
	if n != nil && task != "" {
		q.Cells = append(q.Cells, store.One(recordKind, task))
	}
	if n != nil && ends(n.Kind) && n.TaskID != "" {
		once = n.TaskID
		q.Cells = append(q.Cells, store.One(keyKind, once))
	}
	err = o.update(ctx, thread, q, func(s store.Snapshot) (*store.Batch, error) {
		seq = 0
		b := &store.Batch{}
		if once != "" {
			if _, queued := s.Cell(keyKind, once); queued {
				return nil, nil
			}
			b.Put = append(b.Put, store.Cell{Kind: keyKind, Key: once})
		}
		if n != nil {
			if _, known := s.Cell(recordKind, task); !known && task != "" {
				return nil, ErrDropped
			}
			seq = s.Revision + 1
			e := entry{seq: seq, data: data, at: o.cfg.Now()}
			b.Put = append(b.Put, e.cell(thread))
		}
		if record != nil {
			b.Put = append(b.Put, recordCell(thread, task, record))
		}
		return b, nil
	})
	if err != nil {
		return 0, err
	}
	return seq, nil
}

func recordCell(thread, task string, record []byte) store.Cell {
	return store.Cell{Kind: recordKind, Key: task, Value: record, Index: indexOf(thread)}
}

// update applies the batch that change makes of what a query selects, all of it or none. A batch without changes is left out.
func (o *Inbox) update(ctx context.Context, thread string, q store.Query, change func(store.Snapshot) (*store.Batch, error)) error {
	o.mu.Lock()
	closed := o.closed
	o.mu.Unlock()
	if closed {
		return ErrClosed
	}
	_, err := store.Update(ctx, o.cfg.Store, thread, q, func(s store.Snapshot) (*store.Batch, error) {
		b, err := change(s)
		if err != nil || b == nil || len(b.Put)+len(b.Delete) == 0 {
			return nil, err
		}
		return b, nil
	})
	return err
}

// Claim replaces the record of a task if it is still the one that the caller read, and reports whether it was. Of several
// processes that take over a task of one that has ended, one succeeds. It reports true as well when an attempt with an unknown outcome
// had replaced it.
func (o *Inbox) Claim(ctx context.Context, thread, task string, was, record []byte) (ok bool, err error) {
	q := store.Query{Cells: []store.Range{store.One(recordKind, task)}}
	err = o.update(ctx, thread, q, func(s store.Snapshot) (*store.Batch, error) {
		now, known := s.Cell(recordKind, task)
		done := known && bytes.Equal(now, record)
		if ok = done || known && bytes.Equal(now, was); done || !ok {
			return nil, nil
		}
		return &store.Batch{Put: []store.Cell{recordCell(thread, task, record)}}, nil
	})
	return ok && err == nil, wrap(thread, err)
}

// Forget drops the records of tasks, and allows their ids to be used again.
func (o *Inbox) Forget(ctx context.Context, thread string, tasks ...string) error {
	var ranges []store.Range
	for _, task := range tasks {
		ranges = append(ranges, store.One(recordKind, task), store.One(keyKind, task))
	}
	return wrap(thread, o.drop(ctx, thread, ranges))
}

// drop deletes cells. A thread that is gone has none, and stays gone.
func (o *Inbox) drop(ctx context.Context, thread string, ranges []store.Range) error {
	if len(ranges) == 0 {
		return nil
	}
	_, err := store.Update(ctx, o.cfg.Store, thread, store.Query{}, func(s store.Snapshot) (*store.Batch, error) {
		if s.Revision == 0 {
			return nil, nil
		}
		return &store.Batch{Delete: ranges}, nil
	})
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
