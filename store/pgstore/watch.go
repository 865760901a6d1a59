package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"sync"
)

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, topic string) (<-chan struct{}, error) {
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	c, remove := s.hub.add(topicDigest(topic))
	context.AfterFunc(ctx, remove)
	return c, nil
}

const (
	// digestSize is the length of a topic's digest. A topic with the same digest as another one is woken more often.
	digestSize = 16
	// payloadSize is the largest length of a payload of NOTIFY that is used: PostgreSQL takes fewer than 8000 bytes.
	payloadSize = 480 * digestSize
)

func topicDigest(topic string) string {
	sum := sha256.Sum256([]byte(topic))
	return hex.EncodeToString(sum[:digestSize/2])
}

// payloads returns what to notify: digests of topics, one after the other.
func payloads(topics []string) (out []string) {
	for _, topic := range topics {
		if len(out) == 0 || len(out[len(out)-1]) == payloadSize {
			out = append(out, "")
		}
		out[len(out)-1] += topicDigest(topic)
	}
	return out
}

// hub has the watches of this process, by the digests of their topics.
type hub struct {
	mu      sync.Mutex
	watches map[string]map[chan struct{}]bool
}

func newHub() hub { return hub{watches: map[string]map[chan struct{}]bool{}} }

// add adds a watch. remove closes its channel.
func (h *hub) add(digest string) (c chan struct{}, remove func()) {
	c = make(chan struct{}, 1)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.watches[digest] == nil {
		h.watches[digest] = map[chan struct{}]bool{}
	}
	h.watches[digest][c] = true
	return c, func() {
		h.mu.Lock()
		defer h.mu.Unlock()
		delete(h.watches[digest], c)
		if len(h.watches[digest]) == 0 {
			delete(h.watches, digest)
		}
		close(c)
	}
}

// wake wakes the watches of a payload.
func (h *hub) wake(payload string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for ; len(payload) >= digestSize; payload = payload[digestSize:] {
		wake(h.watches[payload[:digestSize]])
	}
}

// wakeAll wakes all watches: what was notified is unknown.
func (h *hub) wakeAll() {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, watches := range h.watches {
		wake(watches)
	}
}

func wake(watches map[chan struct{}]bool) {
	for c := range watches {
		select {
		case c <- struct{}{}:
		default:
		}
	}
}
