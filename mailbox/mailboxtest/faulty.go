package mailboxtest

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/store"
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
	// FaultTwice reports a conflict of a batch, so that it is made twice.
	FaultTwice Fault = "twice"
)

// Faulty is a store that fails on demand. Plan is called before each operation, with its name: "read", "apply", "watch", "scan" and "count"
// followed by the index, "append_events", "read_events", "purge_events", "drop_events" and "time". It may wait, in order to be slow. A nil
// Plan lets everything happen. Damaged reports whether nothing can be read or written of a thread. Set them before the store is used.
type Faulty struct {
	store.Store
	Plan    func(ctx context.Context, operation string) Fault
	Damaged func(thread string) bool
}

var _ store.Events = (*Faulty)(nil)

// do runs an operation with its fault.
func (f *Faulty) do(ctx context.Context, name, thread string, run func() error) error {
	fault := FaultNone
	if f.Plan != nil {
		fault = f.Plan(ctx, name)
	}
	if thread != "" && f.Damaged != nil && f.Damaged(thread) {
		fault = FaultBefore
	}
	switch fault {
	case FaultBefore:
		return ErrInjected
	case FaultTwice:
		if name == "apply" {
			return store.ErrConflict
		}
	default:
	}
	err := run()
	if err == nil && fault == FaultAfter {
		return ErrInjected
	}
	return err
}

// Read implements store.Store.
func (f *Faulty) Read(ctx context.Context, thread string, q store.Query) (s store.Snapshot, err error) {
	err = f.do(ctx, "read", thread, func() (err error) {
		s, err = f.Store.Read(ctx, thread, q)
		return err
	})
	return s, err
}

// Apply implements store.Store.
func (f *Faulty) Apply(ctx context.Context, b store.Batch) (revision uint64, err error) {
	err = f.do(ctx, "apply", b.Thread, func() (err error) {
		revision, err = f.Store.Apply(ctx, b)
		return err
	})
	return revision, err
}

// Scan implements store.Store.
func (f *Faulty) Scan(ctx context.Context, s store.Scan) (list []store.Ref, err error) {
	err = f.do(ctx, "scan "+s.Index, "", func() (err error) {
		list, err = f.Store.Scan(ctx, s)
		return err
	})
	return list, err
}

// Count implements store.Store.
func (f *Faulty) Count(ctx context.Context, index string) (groups map[string]int, err error) {
	err = f.do(ctx, "count "+index, "", func() (err error) {
		groups, err = f.Store.Count(ctx, index)
		return err
	})
	return groups, err
}

// Watch implements store.Store.
func (f *Faulty) Watch(ctx context.Context, topic string) (list <-chan struct{}, err error) {
	err = f.do(ctx, "watch", "", func() (err error) {
		list, err = f.Store.Watch(ctx, topic)
		return err
	})
	return list, err
}

// Time implements store.Clock: the clock of the store, or that of the process if it has none.
func (f *Faulty) Time(ctx context.Context) (now time.Time, err error) {
	clock, ok := f.Store.(store.Clock)
	if !ok {
		return time.Now(), nil
	}
	err = f.do(ctx, "time", "", func() (err error) {
		now, err = clock.Time(ctx)
		return err
	})
	return now, err
}

func (f *Faulty) events() store.Events {
	e, ok := f.Store.(store.Events)
	if !ok {
		panic("mailboxtest: the store below has no events")
	}
	return e
}

// AppendEvents implements store.Events.
func (f *Faulty) AppendEvents(ctx context.Context, list ...store.EventBatch) (refused []string, err error) {
	err = f.do(ctx, "append_events", "", func() (err error) {
		refused, err = f.events().AppendEvents(ctx, list...)
		return err
	})
	return refused, err
}

// ReadEvents implements store.Events.
func (f *Faulty) ReadEvents(ctx context.Context, stream string, after uint64, limit int, wait time.Duration) (list []store.EventBatch, err error) {
	err = f.do(ctx, "read_events", "", func() (err error) {
		list, err = f.events().ReadEvents(ctx, stream, after, limit, wait)
		return err
	})
	return list, err
}

// PurgeEvents implements store.Events.
func (f *Faulty) PurgeEvents(ctx context.Context, before time.Time) error {
	return f.do(ctx, "purge_events", "", func() error { return f.events().PurgeEvents(ctx, before) })
}

// DropEvents implements store.Events.
func (f *Faulty) DropEvents(ctx context.Context, streams ...string) error {
	return f.do(ctx, "drop_events", "", func() error { return f.events().DropEvents(ctx, streams...) })
}
