package mailbox

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

// Describe changes the title and the metadata of a thread, and returns its head. A thread without a dispatch is [ErrNotFound].
func (q *Queue) Describe(ctx context.Context, thread string, d Description) (h Head, err error) {
	ctx, end := q.begin(ctx, Operation{Name: OpDescribe, Thread: thread})
	defer func() { end(false, err) }()
	if err := d.validate(); err != nil {
		return Head{}, wrap("thread", thread, err)
	}
	var verdict error
	err = q.update(ctx, thread, Need{}, func(t *turn) (out Change) {
		verdict = nil
		if t.head.Seq == 0 {
			verdict = wrap("thread", thread, ErrNotFound)
			return Change{}
		}
		if d.Title != nil {
			t.head.Title = clip(*d.Title)
		}
		if d.Metadata != nil {
			t.head.Metadata = string(d.Metadata)
		}
		h = t.head
		return t.keep()
	})
	if err == nil {
		err = verdict
	}
	return h, err
}

// Delete drops a thread and the threads below it that belong to its tenant, with everything that the store has in them, the lowest first.
// It returns how many there were. One that a process holds is [ErrBusy], as with [Queue.Drop]: those above it stay then.
func (q *Queue) Delete(ctx context.Context, thread string) (n int, err error) {
	h, err := q.Head(ctx, thread)
	if err != nil {
		return 0, err
	}
	if h.Seq == 0 {
		return 0, wrap("thread", thread, ErrNotFound)
	}
	return q.delete(ctx, h, map[string]bool{thread: true})
}

// childPage is how many threads below another one are listed at once.
const childPage = 100

func (q *Queue) delete(ctx context.Context, h Head, seen map[string]bool) (n int, err error) {
	for after := ""; ; {
		list, err := q.cfg.Store.Threads(ctx, ThreadQuery{Parent: h.Thread, After: after, Limit: childPage})
		if err != nil {
			return n, wrap("threads below", h.Thread, err)
		}
		for _, child := range list {
			if child.Tenant != h.Tenant || seen[child.Thread] {
				continue // a name that a stranger has given, or a circle
			}
			seen[child.Thread] = true
			below, err := q.delete(ctx, child, seen)
			n += below
			if err != nil {
				return n, err
			}
		}
		if len(list) < childPage {
			break
		}
		after = list[len(list)-1].Thread
	}
	if err := q.Drop(ctx, h.Thread); err != nil {
		return n, err
	}
	return n + 1, nil
}
