package natsstore

import (
	"context"
	"fmt"
	"maps"

	"github.com/mortise-dev/mortise/mailbox"
)

// claim counts the claim of a head, if it has one. The caller holds the lock.
func (m *mirror) claim(h mailbox.Head, n int) {
	if h.Claim == nil {
		return
	}
	if m.claims[h.Tenant] += n; m.claims[h.Tenant] == 0 {
		delete(m.claims, h.Tenant)
	}
}

// settled are the claims, and whether they are all of those that were made up to the head of that number. The heads of a stream
// replace one another, and one may be gone before it is delivered: so it takes a moment at which the server had none left.
func (m *mirror) settled(number uint64) (claims map[string]int, seen uint64, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.exact >= number {
		claims = maps.Clone(m.claims)
	}
	return claims, m.seen, m.exact >= number
}

// quiet notes that the server has no head after that one.
func (m *mirror) quiet(number uint64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.exact = max(m.exact, number)
}

func (m *mirror) latestKnown() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.known
}

// Claims implements mailbox.Reader. Nothing is asked when the heads come in as they are written, as they do.
func (s *Store) Claims(ctx context.Context) (map[string]int, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Patience, errPatience)
	defer cancel()
	number := s.mirror.latestKnown()
	for {
		if _, err := s.mirror.wait(ctx, number); err != nil {
			return nil, fmt.Errorf("natsstore: claims: %w", err)
		}
		claims, seen, ok := s.mirror.settled(number)
		if ok {
			return claims, nil
		}
		last, found, err := s.last(ctx, s.names.heads())
		if err != nil {
			return nil, fmt.Errorf("natsstore: claims: %w", err)
		}
		if found && last.Seq == seen && seen >= number {
			s.mirror.quiet(seen)
			continue
		}
		if _, err := s.mirror.wait(ctx, last.Seq); err != nil {
			return nil, fmt.Errorf("natsstore: claims: %w", err)
		}
	}
}
