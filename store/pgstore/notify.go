package pgstore

import (
	"context"
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
	// some has an element when there are topics.
	some chan struct{}
}

func newNotices() notices { return notices{topics: map[string]bool{}, some: make(chan struct{}, 1)} }

func (n *notices) add(topics []string) {
	if len(topics) == 0 {
		return
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, topic := range topics {
		n.topics[topic] = true
	}
	select {
	case n.some <- struct{}{}:
	default:
	}
}

func (n *notices) take() (topics []string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for topic := range n.topics {
		topics = append(topics, topic)
	}
	clear(n.topics)
	slices.Sort(topics)
	return topics
}

// notifying notifies until ctx is done, and then once more.
func (s *Store) notifying(ctx context.Context) {
	for {
		select {
		case <-s.notices.some:
			_ = wait.For(ctx, notifyAfter)
			s.notifyTaken(ctx)
		case <-ctx.Done():
			s.notifyTaken(ctx)
			return
		}
	}
}

func (s *Store) notifyTaken(ctx context.Context) {
	topics := s.notices.take()
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), brief)
	defer cancel()
	if err := s.notify(limited, topics); err != nil {
		s.cfg.Logger.WarnContext(ctx, "pgstore_not_notified", "topics", len(topics), "error", err)
	}
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
