package mailboxtest

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// ErrInjected is what a [Faulty] store fails with.
var ErrInjected = errors.New("injected fault")

// Fault is what happens to an operation.
type Fault string

// Faults.
const (
	// FaultNone lets it happen.
	FaultNone Fault = ""
	// FaultBefore lets it fail, and nothing is written.
	FaultBefore Fault = "before"
	// FaultAfter lets it happen and reports a failure.
	FaultAfter Fault = "after"
	// FaultTwice lets decide run on state that is out of date first, as a store does that compares and swaps.
	FaultTwice Fault = "twice"
)

// Faulty is a store that fails on demand. Plan is asked before each operation, by its
// name ("update", "load", "due", "find", "purge", "dispatches", "messages", "threads", "count", "claims"). It may wait, in order
// to be slow. A nil Plan lets everything happen. Damaged says whether nothing can be read or written of a thread; nil: of all it can.
// Set them before the store is used. A Faulty has no optional abilities: see [Faulty.Whole].
type Faulty struct {
	mailbox.Store
	Plan    func(ctx context.Context, operation string) Fault
	Damaged func(thread string) bool
}

func (f *Faulty) damaged(thread string) bool { return f.Damaged != nil && f.Damaged(thread) }

// do runs an operation with its fault.
func (f *Faulty) do(ctx context.Context, name string, run func() error) error {
	fault := FaultNone
	if f.Plan != nil {
		fault = f.Plan(ctx, name)
	}
	if fault == FaultBefore {
		return ErrInjected
	}
	err := run()
	if fault == FaultAfter {
		return ErrInjected
	}
	return err
}

// Update implements mailbox.Store.
func (f *Faulty) Update(ctx context.Context, thread string, need mailbox.Need, decide func(mailbox.State) (mailbox.Change, error)) error {
	fault := FaultNone
	if f.Plan != nil {
		fault = f.Plan(ctx, "update")
	}
	if f.damaged(thread) {
		fault = FaultBefore
	}
	switch fault {
	case FaultBefore:
		return ErrInjected
	case FaultTwice:
		s, err := f.Store.Load(ctx, thread, need)
		if err != nil {
			return err
		}
		if _, err := decide(s); err != nil {
			return err
		}
	default:
	}
	if err := f.Store.Update(ctx, thread, need, decide); err != nil || fault != FaultAfter {
		return err
	}
	return ErrInjected
}

// Load implements mailbox.Store.
func (f *Faulty) Load(ctx context.Context, thread string, need mailbox.Need) (s mailbox.State, err error) {
	err = f.do(ctx, "load", func() (err error) {
		if f.damaged(thread) {
			return ErrInjected
		}
		s, err = f.Store.Load(ctx, thread, need)
		return err
	})
	return s, err
}

// Due implements mailbox.Store.
func (f *Faulty) Due(ctx context.Context, q mailbox.DueQuery) (heads []mailbox.Head, next time.Time, err error) {
	err = f.do(ctx, "due", func() (err error) {
		heads, next, err = f.Store.Due(ctx, q)
		return err
	})
	return heads, next, err
}

// Find implements mailbox.Store.
func (f *Faulty) Find(ctx context.Context, kind mailbox.Kind, id string) (thread string, found bool, err error) {
	err = f.do(ctx, "find", func() (err error) {
		thread, found, err = f.Store.Find(ctx, kind, id)
		return err
	})
	return thread, found, err
}

// Purge implements mailbox.Store.
func (f *Faulty) Purge(ctx context.Context, q mailbox.PurgeQuery) (n int, err error) {
	err = f.do(ctx, "purge", func() (err error) {
		n, err = f.Store.Purge(ctx, q)
		return err
	})
	return n, err
}

// Dispatches implements mailbox.Reader.
func (f *Faulty) Dispatches(ctx context.Context, q mailbox.DispatchQuery) (list []mailbox.Dispatch, err error) {
	err = f.do(ctx, "dispatches", func() (err error) {
		list, err = f.Store.Dispatches(ctx, q)
		return err
	})
	return list, err
}

// Messages implements mailbox.Reader.
func (f *Faulty) Messages(ctx context.Context, thread string, from, limit int) (list []mailbox.Message, err error) {
	err = f.do(ctx, "messages", func() (err error) {
		list, err = f.Store.Messages(ctx, thread, from, limit)
		return err
	})
	return list, err
}

// Runs implements mailbox.Reader.
func (f *Faulty) Runs(ctx context.Context, q mailbox.RunQuery) (list []mailbox.Run, err error) {
	err = f.do(ctx, "runs", func() (err error) {
		list, err = f.Store.Runs(ctx, q)
		return err
	})
	return list, err
}

// Threads implements mailbox.Reader.
func (f *Faulty) Threads(ctx context.Context, q mailbox.ThreadQuery) (list []mailbox.Head, err error) {
	err = f.do(ctx, "threads", func() (err error) {
		list, err = f.Store.Threads(ctx, q)
		return err
	})
	return list, err
}

// Count implements mailbox.Reader.
func (f *Faulty) Count(ctx context.Context) (c mailbox.Counts, err error) {
	err = f.do(ctx, "count", func() (err error) {
		c, err = f.Store.Count(ctx)
		return err
	})
	return c, err
}

// Claims implements mailbox.Reader.
func (f *Faulty) Claims(ctx context.Context) (claims map[string]int, err error) {
	err = f.do(ctx, "claims", func() (err error) {
		claims, err = f.Store.Claims(ctx)
		return err
	})
	return claims, err
}

// once is a plan that gives the nth operation of a name a fault, counted from 1.
func once(name string, nth int, fault Fault) func(context.Context, string) Fault {
	var mu sync.Mutex
	seen := 0
	return func(_ context.Context, operation string) Fault {
		mu.Lock()
		defer mu.Unlock()
		if operation == name {
			seen++
		}
		if operation == name && seen == nth {
			return fault
		}
		return FaultNone
	}
}
