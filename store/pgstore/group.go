package pgstore

import (
	"context"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/store"
)

// Bounds of what is applied in one transaction.
const (
	maxGroup = 64
	maxBytes = 1 << 20
)

// member is a batch of a group.
type member struct {
	batch *store.Batch
	// ready is closed when the member's batch was applied, or its caller is to lead the next group.
	ready chan struct{}
	leads bool

	revision uint64
	err      error
	// alone is set if the batch was not applied, and has to be without others.
	alone bool
}

// groups has the batches that wait while others are applied. Their callers apply them, many in one transaction, which makes a commit and a
// round trip of many: the caller of the first batch that waits leads the next group.
//
// Batches of one thread are not for the same group, and do not wait for each other's: where several writers change a thread, the one that won
// would always be the first to know the new revision, and win again.
type groups struct {
	mu      sync.Mutex
	busy    bool
	waiting []*member
	threads map[string]bool // of the batches that wait or are being applied
}

// join returns when the batch was applied with others, or calls lead to do so. An error is that of ctx, and the batch is not applied.
func (g *groups) join(ctx context.Context, m *member, lead func()) error {
	if m.batch.Size() > maxBytes || !g.claim(m) {
		m.alone = true
		return nil
	}
	defer g.release(m)
	if !g.enter(m) {
		select {
		case <-m.ready:
		case <-ctx.Done():
			if g.leave(m) {
				return context.Cause(ctx)
			}
			<-m.ready // it is being applied
		}
	}
	if m.leads {
		defer g.next()
		lead()
	}
	return nil
}

// claim reports whether no other batch of the thread waits or is being applied.
func (g *groups) claim(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.threads[m.batch.Thread] {
		return false
	}
	if g.threads == nil {
		g.threads = map[string]bool{}
	}
	g.threads[m.batch.Thread] = true
	return true
}

func (g *groups) release(m *member) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.threads, m.batch.Thread)
}

// enter reports whether a batch leads a group at once. Else it waits.
func (g *groups) enter(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.busy {
		g.busy, m.leads = true, true
		return true
	}
	m.ready = make(chan struct{})
	g.waiting = append(g.waiting, m)
	return false
}

// leave removes a batch that still waits, and reports whether it did.
func (g *groups) leave(m *member) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	at := slices.Index(g.waiting, m)
	if at >= 0 {
		g.waiting = slices.Delete(g.waiting, at, at+1)
	}
	return at >= 0
}

// take returns a group: the batch that leads, and those that wait.
func (g *groups) take(first *member) []*member {
	g.mu.Lock()
	defer g.mu.Unlock()
	list, bytes := []*member{first}, first.batch.Size()
	g.waiting = slices.DeleteFunc(g.waiting, func(m *member) bool {
		n := m.batch.Size()
		if len(list) == maxGroup || bytes+n > maxBytes {
			return false
		}
		list, bytes = append(list, m), bytes+n
		return true
	})
	return list
}

// next has the first batch that waits lead the next group.
func (g *groups) next() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.busy = len(g.waiting) > 0; !g.busy {
		return
	}
	m := g.waiting[0]
	g.waiting = slices.Delete(g.waiting, 0, 1)
	m.leads = true
	close(m.ready)
}

// together applies a group. When the server refuses a group it has changed nothing, and each batch is applied alone: one of them takes a
// unique place that another cell has, or has to wait for another transaction. Without an answer nothing is known of any of them.
func (s *Store) together(ctx context.Context, first *member) {
	group := s.groups.take(first)
	list := make([]*store.Batch, len(group))
	for i, m := range group {
		list[i] = m.batch
	}
	if len(group) > 1 {
		ctx = context.WithoutCancel(ctx) // of one of the callers
	}
	out, err := s.call(ctx, false, list)
	for i, m := range group {
		switch {
		case err != nil:
			m.err, m.alone = err, code(err) == lockTimeout || len(group) > 1 && answered(err)
		case out[i].outcome == outcomeLocked:
			m.alone = true
		default:
			m.revision, m.err = out[i].of(m.batch)
		}
		if m != first {
			close(m.ready)
		}
	}
}
