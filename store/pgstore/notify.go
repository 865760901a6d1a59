package pgstore

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store/internal/wait"
)

// notifyAfter is how long a notification waits for others.
const notifyAfter = 2 * time.Millisecond

// notices are topics whose batches were applied. They are notified after the commit, many at a time: PostgreSQL makes transactions that
// notify wait for each other while they commit. What the end of the process loses is found by polling.
type notices struct {
	mu     sync.Mutex
	topics map[string]bool
	// pending is set while a goroutine notifies, closed when none is to be started any more.
	pending, closed bool
}

// notifyLater notifies topics, together with those that come meanwhile.
func (s *Store) notifyLater(ctx context.Context, topics []string) {
	n := &s.notices
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(topics) == 0 || n.closed {
		return
	}
	for _, topic := range topics {
		n.topics[topic] = true
	}
	if !n.pending {
		n.pending = true
		s.work.Go(func() { s.notifying(context.WithoutCancel(ctx)) })
	}
}

// notifying notifies topics until there are none.
func (s *Store) notifying(ctx context.Context) {
	for {
		_ = wait.For(ctx, notifyAfter)
		topics := s.notices.take()
		if len(topics) == 0 {
			return
		}
		limited, cancel := context.WithTimeout(ctx, brief)
		if err := s.notify(limited, topics); err != nil {
			s.cfg.Logger.WarnContext(ctx, "pgstore_not_notified", "topics", len(topics), "error", err)
		}
		cancel()
	}
}

func (n *notices) take() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	topics := slices.Sorted(maps.Keys(n.topics))
	clear(n.topics)
	n.pending = len(topics) > 0
	return topics
}

func (n *notices) close() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.closed = true
}

func (s *Store) notify(ctx context.Context, topics []string) error {
	if len(topics) == 0 {
		return nil
	}
	return s.write(ctx, "notify", func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, s.sql.notify, payloads(topics))
		return err
	})
}
