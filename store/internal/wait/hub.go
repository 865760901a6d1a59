package wait

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Hub has the watches of a process, by topic. The zero value has none.
type Hub struct {
	// Added receives after a watch was added, if it is not nil.
	Added chan struct{}

	mu      sync.Mutex
	watches map[string]map[chan struct{}]bool
}

// Add adds a watch of a topic. remove closes its channel.
func (h *Hub) Add(topic string) (c chan struct{}, remove func()) {
	c = make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches == nil {
		h.watches = map[string]map[chan struct{}]bool{}
	}
	if h.watches[topic] == nil {
		h.watches[topic] = map[chan struct{}]bool{}
	}
	h.watches[topic][c] = true
	ring(h.Added)
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watches[topic], c)
		if len(h.watches[topic]) == 0 {
			delete(h.watches, topic)
		}
		close(c)
	}
}

// Watch adds a watch that ends with ctx, as store.Store has it.
func (h *Hub) Watch(ctx context.Context, topic string) (<-chan struct{}, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	c, remove := h.Add(topic)
	context.AfterFunc(ctx, remove)
	return c, nil
}

// Watched reports whether there are watches.
func (h *Hub) Watched() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return len(h.watches) > 0
}

// Notify wakes the watches of topics.
func (h *Hub) Notify(topics ...string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, topic := range topics {
		wake(h.watches[topic])
	}
}

// NotifyAll wakes all watches.
func (h *Hub) NotifyAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, watches := range h.watches {
		wake(watches)
	}
}

func wake(watches map[chan struct{}]bool) {
	for c := range watches {
		ring(c)
	}
}

// ring leaves an element in a channel, if there is room.
func ring(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// StreamTopic is notified when a stream gets events. No batch has that topic: it is too long.
func StreamTopic(stream string) string { return strings.Repeat(" ", store.MaxKey+1) + stream }

// Events reads until there is something: at once, and whenever the topic is notified, until the time is over.
func (h *Hub) Events(
	ctx context.Context, topic string, limit time.Duration, read func() ([]store.EventBatch, error),
) ([]store.EventBatch, error) {
	more, remove := h.Add(topic)
	defer remove()
	over := time.NewTimer(limit)
	defer over.Stop()
	for {
		list, err := read()
		if err != nil || len(list) > 0 || limit <= 0 {
			return list, err
		}
		select {
		case <-more:
		case <-over.C:
			return nil, nil
		case <-ctx.Done():
			return nil, context.Cause(ctx)
		}
	}
}

// For waits. It fails when ctx is done.
func For(ctx context.Context, d time.Duration) error {
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
