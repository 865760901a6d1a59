package providertest

import (
	"crypto/sha256"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// The rules of the prompt caches, in tokens unless it is said.
const (
	minCached  = 1024
	step       = 128
	lookBack   = 20 // blocks, the breakpoint's own included
	openAILife = 10 * time.Minute
	maxEntries = 1 << 16
)

// entry is a cached prefix.
type entry struct {
	expires time.Time
	ttl     time.Duration
}

// cached reads and fills the cache for a request, and sets the part of its bill that is the prompt.
func (s *Server) cached(p *protocol, a *ask) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.cfg.Now()
	if len(s.cache) > maxEntries {
		clear(s.cache)
	}
	total := a.prompt.tokens()
	var read, short, long int64
	if p.api == AnthropicMessages {
		read, short, long = s.breakpoints(a, now)
	} else {
		read = s.steps(a, now)
	}
	a.long = long
	a.bill = abi.Usage{PromptTokens: total, CacheReadTokens: read, CacheCreationTokens: short + long}
	rest := float64(total - read - short - long)
	a.cost = (rest + 1.25*float64(short) + 2*float64(long)) * a.spec.Input / 1e6
	a.cost += float64(read) * a.spec.Cached / 1e6
	a.bill.TotalTokens = total
}

// breakpoints is Anthropic's cache: prefixes are written at breakpoints and found at most
// lookBack blocks before one. Short and long are what is written for 5 minutes and 1 hour.
func (s *Server) breakpoints(a *ask, now time.Time) (read, short, long int64) {
	marks := a.prompt.marks
	keys := make([]digest, len(marks))
	h := sha256.New()
	h.Write([]byte(a.model))
	from, hit := 0, -1
	for i, m := range marks {
		h.Write(a.prompt.text[from:m.end])
		from = m.end
		h.Sum(keys[i][:0])
	}
	for i := range marks {
		for j := i; marks[i].ttl > 0 && j > i-lookBack && j > hit; j-- {
			if s.refresh(keys[j], now) {
				hit = j
				read = tokens(marks[j].end)
			}
		}
	}
	done := read
	for i, m := range marks {
		n := tokens(m.end)
		if m.ttl == 0 || n < minCached {
			continue
		}
		if i > hit {
			if m.ttl > shortLife {
				long += n - done
			} else {
				short += n - done
			}
			done = n
		}
		s.store(keys[i], m.ttl, now)
	}
	return read, short, long
}

// steps is OpenAI's cache: prefixes of at least minCached tokens, in steps.
func (s *Server) steps(a *ask, now time.Time) (read int64) {
	h := sha256.New()
	h.Write([]byte(a.model))
	text := a.prompt.text
	for n := int64(step); 4*int(n) <= len(text); n += step {
		h.Write(text[4*(n-step) : 4*n])
		if n < minCached {
			continue
		}
		var key digest
		h.Sum(key[:0])
		if s.refresh(key, now) {
			read = n
		}
		s.store(key, openAILife, now)
	}
	return read
}

// refresh finds a prefix and begins its lifetime anew.
func (s *Server) refresh(key digest, now time.Time) bool {
	e, ok := s.cache[key]
	if !ok || !now.Before(e.expires) {
		return false
	}
	e.expires = now.Add(e.ttl)
	s.cache[key] = e
	return true
}

func (s *Server) store(key digest, ttl time.Duration, now time.Time) {
	if e := s.cache[key]; e.ttl > ttl && now.Before(e.expires) {
		ttl = e.ttl
	}
	s.cache[key] = entry{expires: now.Add(ttl), ttl: ttl}
}
