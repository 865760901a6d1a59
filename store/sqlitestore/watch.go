package sqlitestore

import (
	"context"
	"database/sql"
	"sync"
	"time"
)

// pollEvery is how often the file is polled for what other processes wrote, while there is a watch.
const pollEvery = 10 * time.Millisecond

// hub has the watches of a Store, and the goroutine that polls for them.
type hub struct {
	mu     sync.Mutex
	topics map[string]map[chan struct{}]bool
	// watches counts watches and waiting readers of events.
	watches int
	// more is closed when events may have been added.
	more   chan struct{}
	closed bool

	// seen is the latest notice that was delivered. It belongs to the goroutine.
	seen int64
	wake chan struct{}
	stop context.CancelFunc
	done sync.WaitGroup
}

func newHub() *hub {
	return &hub{topics: map[string]map[chan struct{}]bool{}, more: make(chan struct{}), wake: make(chan struct{}, 1)}
}

// start starts the goroutine. It polls while there are watches.
func (h *hub) start(ctx context.Context, poll func(context.Context)) {
	ctx, h.stop = context.WithCancel(context.WithoutCancel(ctx))
	h.done.Go(func() { poll(ctx) })
}

func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	close(h.more)
	h.mu.Unlock()
	h.stop()
	h.done.Wait()
}

// join adds a watch, so that the goroutine polls. The caller holds the lock, and calls leave.
func (h *hub) join() {
	h.watches++
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

func (h *hub) watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.watches > 0
}

// notify notifies the watches of topics, and the readers of events.
func (h *hub) notify(topics []string, events bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, topic := range topics {
		for c := range h.topics[topic] {
			ring(c)
		}
	}
	if events && !h.closed {
		close(h.more)
		h.more = make(chan struct{})
	}
}

func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// Watch implements store.Store. Batches of other processes are noticed by polling. The first watch may receive at once.
func (s *Store) Watch(ctx context.Context, topic string) (<-chan struct{}, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, wrap("topic", topic, err)
	}
	h := s.hub
	c := make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, wrap("topic", topic, ErrClosed)
	}
	if h.topics[topic] == nil {
		h.topics[topic] = map[chan struct{}]bool{}
	}
	h.topics[topic][c] = true
	h.join()
	context.AfterFunc(ctx, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		h.watches--
		delete(h.topics[topic], c)
		if len(h.topics[topic]) == 0 {
			delete(h.topics, topic)
		}
		close(c)
	})
	return c, nil
}

// poll delivers what other processes wrote, until ctx is done. Errors are left to the next attempt: a watch may miss something.
func (s *Store) poll(ctx context.Context) {
	var c *conn
	version := int64(-1)
	for {
		if !s.hub.watched() {
			select {
			case <-s.hub.wake:
				version = -1
				continue
			case <-ctx.Done():
			}
		}
		if ctx.Err() == nil && c == nil {
			c, _ = s.reader(ctx)
		}
		if ctx.Err() == nil && c != nil {
			_ = s.look(ctx, c, &version)
		}
		if !pause(ctx, pollEvery) {
			break
		}
	}
	if c != nil {
		_ = c.close() // it only read
	}
}

// look delivers the notices of other processes if the file has changed since the last call.
func (s *Store) look(ctx context.Context, c *conn, version *int64) error {
	var now int64
	if _, err := c.row(ctx, []any{&now}, "PRAGMA data_version"); err != nil || now == *version {
		return err
	}
	var topics []string
	err := c.rows(ctx, func(rows *sql.Rows) error {
		var id, origin int64
		var topic sql.RawBytes
		if err := rows.Scan(&id, &origin, &topic); err != nil {
			return err
		}
		s.hub.seen = id
		if origin != s.origin {
			topics = append(topics, string(topic))
		}
		return nil
	}, "SELECT id, origin, topic FROM notice WHERE id > ? ORDER BY id", s.hub.seen)
	s.hub.notify(topics, true)
	if err == nil {
		*version = now
	}
	return err
}
