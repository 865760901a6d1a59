package pgstore

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
)

// Watch implements store.Store.
func (s *Store) Watch(ctx context.Context, topic string) (<-chan struct{}, error) {
	return s.hub.Watch(ctx, topicDigest(topic))
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

// wake wakes the watches of a payload.
func (s *Store) wake(payload string) {
	for ; len(payload) >= digestSize; payload = payload[digestSize:] {
		s.hub.Notify(payload[:digestSize])
	}
}
