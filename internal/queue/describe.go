package queue

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
)

// maxDescription bounds the title and the metadata of a thread, in bytes together.
const maxDescription = 8 << 10

// Description is what front ends call a thread. Nil fields are left as they are.
type Description struct {
	Title *string
	// Metadata replaces all of the thread's: a JSON object.
	Metadata json.RawMessage
}

func (d Description) validate() error {
	n := len(d.Metadata)
	if d.Title != nil {
		n += len(*d.Title)
	}
	switch {
	case n > maxDescription:
		return fmt.Errorf("%w: %w: title and metadata have %d bytes, at most are %d", ErrInvalid, ErrTooLarge, n, maxDescription)
	case d.Metadata == nil:
		return nil
	case !json.Valid(d.Metadata) || !strings.HasPrefix(strings.TrimSpace(string(d.Metadata)), "{"):
		return fmt.Errorf("%w: the metadata are not a JSON object", ErrInvalid)
	default:
		return nil
	}
}

// Describe changes the title and the metadata of a thread, and returns its record. A thread without a dispatch is [ErrNotFound].
func (q *Queue) Describe(ctx context.Context, thread string, d Description) (out Thread, err error) {
	ctx, end := q.Begin(ctx, Operation{Name: OpDescribe, Thread: thread})
	defer func() { end(false, err) }()
	if err := d.validate(); err != nil {
		return Thread{}, wrap("thread", thread, err)
	}
	err = q.transition(ctx, thread, nil, need{}, func(t *turn) error {
		if t.thread.Seq == 0 {
			return ErrNotFound
		}
		if d.Title != nil {
			t.thread.Title = Clip(*d.Title)
		}
		if d.Metadata != nil {
			t.thread.Metadata = string(d.Metadata)
		}
		t.save()
		out = t.thread
		return nil
	})
	return out, err
}

// Delete drops a thread and the threads below it that belong to its tenant, with everything that the store has in them, the lowest first.
// It returns how many there were. One that a process holds is [ErrBusy], as with [Queue.Drop]: those above it stay then.
func (q *Queue) Delete(ctx context.Context, thread string) (n int, err error) {
	t, err := q.Thread(ctx, thread)
	if err != nil {
		return 0, err
	}
	if t.Seq == 0 {
		return 0, wrap("thread", thread, ErrNotFound)
	}
	return q.delete(ctx, t, map[string]bool{thread: true})
}

// childPage is how many threads below another one are listed at once.
const childPage = 100

func (q *Queue) delete(ctx context.Context, t Thread, seen map[string]bool) (n int, err error) {
	for after := ""; ; {
		list, err := q.Threads(ctx, ThreadQuery{Parent: t.ID, After: after, Limit: childPage})
		if err != nil {
			return n, wrap("threads below", t.ID, err)
		}
		for _, child := range list {
			if child.Tenant != t.Tenant || seen[child.ID] {
				continue // a parent that another tenant has named, or a circle
			}
			seen[child.ID] = true
			below, err := q.delete(ctx, child, seen)
			n += below
			if err != nil {
				return n, err
			}
		}
		if len(list) < childPage {
			break
		}
		after = list[len(list)-1].ID
	}
	if err := q.Drop(ctx, t.ID); err != nil {
		return n, err
	}
	return n + 1, nil
}
