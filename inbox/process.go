package inbox

import (
	"context"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Processes that share a store have a cell each, in a thread of their own. Its value is until when the process is alive. The thread's name is not
// valid UTF-8, so that no client can have it, and delete it.
const (
	processThread = "\xffinbox/processes"
	processKind   = "inbox-process"
	// processLease is how long a process is alive after a renewal, by the clock of the store.
	processLease = time.Minute
	processRenew = processLease / 4
)

// Owner is the name of this process. It is different for each Inbox.
func (o *Inbox) Owner() string { return o.owner }

// now is the time by the clock of the store, which all processes share, or by Config.Now if the store has none.
func (o *Inbox) now(ctx context.Context) (time.Time, error) {
	if c, ok := o.cfg.Store.(store.Clock); ok {
		return c.Time(ctx)
	}
	return o.cfg.Now(), nil
}

// Alive returns the processes that use the store. It is empty when the store is not shared.
func (o *Inbox) Alive(ctx context.Context) (map[string]bool, error) {
	if !o.cfg.Shared {
		return nil, nil //nolint:nilnil // none is no error
	}
	_, alive, err := o.processes(ctx)
	return alive, wrap(processThread, err)
}

// processes reads the cells of all processes.
func (o *Inbox) processes(ctx context.Context) (s store.Snapshot, alive map[string]bool, err error) {
	now, err := o.now(ctx) // first, so that a renewal meanwhile counts
	if err != nil {
		return s, nil, err
	}
	s, err = o.cfg.Store.Read(ctx, processThread, store.Query{Cells: []store.Range{store.All(processKind)}})
	alive = make(map[string]bool, len(s.Cells))
	for _, c := range s.Cells {
		if until, err := store.ParseNumber(string(c.Value)); err == nil && until > now.UnixMilli() {
			alive[c.Key] = true
		}
	}
	return s, alive, err
}

// renew makes this process alive for the next minute.
func (o *Inbox) renew(ctx context.Context) error {
	now, err := o.now(ctx)
	if err != nil {
		return wrap(processThread, err)
	}
	until := store.Number(now.Add(processLease).UnixMilli())
	_, err = store.ApplySurely(ctx, o.cfg.Store, store.Batch{
		Thread: processThread, Base: store.AnyRevision, Put: []store.Cell{{Kind: processKind, Key: o.owner, Value: []byte(until)}},
	})
	return wrap(processThread, err)
}

// keepAlive renews this process, and reports processes that ended without closing theirs.
func (o *Inbox) keepAlive(ctx context.Context) error { return errors.Join(o.renew(ctx), o.expire(ctx)) }

// expire removes processes that are not alive, and calls Config.Expired if there were any. Another process may come
// first.
func (o *Inbox) expire(ctx context.Context) error {
	s, alive, err := o.processes(ctx)
	if err != nil {
		return err
	}
	var gone []store.Range
	for _, c := range s.Cells {
		if !alive[c.Key] && c.Key != o.owner {
			gone = append(gone, store.One(processKind, c.Key))
		}
	}
	if len(gone) == 0 {
		return nil
	}
	_, err = store.ApplySurely(ctx, o.cfg.Store, store.Batch{Thread: processThread, Base: s.Revision, Delete: gone})
	if errors.Is(err, store.ErrConflict) {
		return nil
	}
	if err == nil {
		o.cfg.Expired(ctx)
	}
	return err
}

// leave removes this process.
func (o *Inbox) leave(ctx context.Context) error {
	_, err := store.ApplySurely(ctx, o.cfg.Store, store.Batch{
		Thread: processThread, Base: store.AnyRevision, Delete: []store.Range{store.One(processKind, o.owner)},
	})
	return wrap(processThread, err)
}
