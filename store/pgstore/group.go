package pgstore

import (
	"context"
	"errors"
	"sync"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
)

// Bounds of what is applied in one transaction.
const (
	maxGroup = 64
	maxBytes = 1 << 20
)

// member is a batch of a group.
type member struct {
	batch    *store.Batch
	revision uint64
	err      error
	// alone is set if the batch was not applied, and has to be without others.
	alone bool
}

// errPanicked is the error of batches whose group panicked.
var errPanicked = errors.New("pgstore: another batch of the same group panicked")

type job = sqlcore.Job[*member]

// groups has batches that wait while others are applied: many in one transaction, which makes a commit and a round trip of many.
//
// Batches of one thread are not for the same group, and do not wait for each other's: where several writers change a thread, the one that won
// would always be the first to know the new revision, and win again.
type groups struct {
	queue   sqlcore.Queue[*member]
	mu      sync.Mutex
	threads map[string]bool // of the batches that wait or are being applied
}

func newGroups() *groups {
	return &groups{queue: sqlcore.Queue[*member]{Jobs: maxGroup, Bytes: maxBytes}, threads: map[string]bool{}}
}

// claim reports whether no other batch of the thread waits or is being applied.
func (g *groups) claim(thread string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	claimed := !g.threads[thread]
	g.threads[thread] = true
	return claimed
}

func (g *groups) release(thread string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.threads, thread)
}

// grouped applies a batch with others, if it can be.
func (s *Store) grouped(ctx context.Context, b *store.Batch) (*member, error) {
	j := &job{Item: &member{batch: b}, Size: b.Size()}
	if j.Size > maxBytes || !s.groups.claim(b.Thread) {
		j.Item.alone = true
		return j.Item, nil
	}
	defer s.groups.release(b.Thread)
	return j.Item, s.groups.queue.Do(ctx, j, func() { s.together(ctx, j) })
}

// together applies a group. When the server refuses a group it has changed nothing, and each batch is applied alone: one of them takes a
// unique place that another cell has, or has to wait for another transaction. Without an answer nothing is known of any of them.
func (s *Store) together(ctx context.Context, first *job) {
	var group []*job
	var list []*store.Batch
	size := 0
	defer func() {
		for _, j := range group {
			j.Done()
		}
	}()
	for j := first; j != nil; j = s.groups.queue.Next(len(group), size, func(*member) bool { return true }) {
		j.Item.err = errPanicked // until it is known
		group, list, size = append(group, j), append(list, j.Item.batch), size+j.Size
	}
	if len(group) > 1 {
		ctx = context.WithoutCancel(ctx) // of one of the callers
	}
	out, err := s.call(ctx, false, list)
	for i, j := range group {
		switch m := j.Item; {
		case err != nil:
			m.err, m.alone = err, code(err) == lockTimeout || len(group) > 1 && answered(err)
		case out[i].outcome == outcomeLocked:
			m.alone = true
		default:
			m.revision, m.err = out[i].of(m.batch)
		}
	}
}
