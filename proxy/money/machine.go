package money

import (
	"encoding/binary"
	"time"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// Segment is a part of a prompt: a tool, a system block, an item of the conversation.
type Segment struct {
	Digest uint64
	// Weight is its share of the prompt's tokens, in bytes of about a token's quarter each.
	Weight int64
	Blocks int
	// TTL is the life of the cache marker at its end, 0 for none.
	TTL time.Duration
	// Item means that it is part of the conversation.
	Item bool
}

// Sequence is a prompt in the order in which caches read it.
type Sequence []Segment

// mediaWeight is that of an image, which is billed by its size in pixels.
const mediaWeight = 6000

// SequenceOf returns the prompt of a request.
func SequenceOf(r *wire.Request) Sequence {
	b := r.Body
	out := make(Sequence, 0, len(r.Tools)+len(r.Items)+4)
	out = append(out, Segment{Digest: wire.DigestOf([]byte(r.Model))})
	for _, t := range r.Tools {
		out = append(out, segment(b, t.Span, t.Mark))
	}
	if at := r.Top["system"]; at.Exists() && b[at.From] == '[' {
		_ = wire.Array(b, at, func(_ int, val wire.Span) error {
			out = append(out, segment(b, val, wire.Field(b, val, "cache_control")))
			return nil
		})
	} else {
		for _, name := range []string{"system", "instructions"} {
			if at := r.Top[name]; at.Exists() {
				out = append(out, segment(b, at, wire.Span{}))
			}
		}
	}
	for _, name := range []string{"tool_choice", "thinking", "reasoning"} {
		if at := r.Top[name]; at.Exists() {
			out = append(out, Segment{Digest: wire.DigestOf(at.Of(b))})
		}
	}
	for i := range r.Items {
		out = append(out, item(r, i))
	}
	if top := r.Top["cache_control"]; top.Exists() {
		out[len(out)-1].TTL = ttl(b, top)
	}
	return out
}

func segment(b []byte, at, mark wire.Span) Segment {
	s := Segment{Weight: int64(at.To - at.From), Blocks: 1}
	if !mark.Exists() {
		s.Digest = wire.DigestOf(at.Of(b))
		return s
	}
	s.TTL = ttl(b, mark)
	s.Digest = wire.DigestOf(b[at.From:mark.From], b[mark.To:at.To])
	return s
}

func item(r *wire.Request, i int) Segment {
	it := &r.Items[i]
	s := Segment{Digest: r.Digest(i), Weight: int64(it.To - it.From), Blocks: max(1, len(it.Blocks)), Item: true}
	for _, bl := range it.Blocks {
		if bl.Mark.Exists() {
			s.TTL = ttl(r.Body, bl.Mark)
			s.Weight -= int64(bl.Mark.To - bl.Mark.From)
		}
		if bl.Type == wire.TypeMedia {
			s.Weight += mediaWeight - int64(bl.To-bl.From)
		}
	}
	return s
}

// ttl reads a marker, with or without its key.
func ttl(b []byte, at wire.Span) time.Duration {
	i := at.From
	for i < at.To && b[i] != '{' {
		i++
	}
	if wire.String(b, wire.Field(b, wire.Span{From: i, To: at.To}, "ttl")) == "1h" {
		return time.Hour
	}
	return 5 * time.Minute
}

// Weight is that of the whole prompt.
func (s Sequence) Weight() (n int64) {
	for i := range s {
		n += s[i].Weight
	}
	return n
}

// Machine is a prompt cache.
type Machine struct {
	entries map[uint64]entry
	full    int // how many there may be before the next trim
}

type entry struct {
	until time.Time
	life  time.Duration
}

// NewMachine returns an empty cache.
func NewMachine() *Machine { return &Machine{entries: map[uint64]entry{}} }

// minEntries and maxEntries bound a machine. Beyond them it forgets what is over; one that is full all the same begins anew.
const minEntries, maxEntries = 1 << 10, 1 << 16

// trim forgets prefixes whose life is over, each time that there are twice as many as the time before.
func (m *Machine) trim(at time.Time) {
	if len(m.entries) < max(minEntries, m.full) {
		return
	}
	for k, e := range m.entries {
		if !at.Before(e.until) {
			delete(m.entries, k)
		}
	}
	if len(m.entries) > maxEntries {
		clear(m.entries)
	}
	m.full = 2 * len(m.entries)
}

// Bill returns what a prompt of so many tokens takes from the cache and writes to it, at a moment.
func (m *Machine) Bill(r *Rates, s Sequence, tokens int64, at time.Time) wire.Usage {
	m.trim(at)
	weight := max(1, s.Weight())
	ends, keys := make([]int64, len(s)), make([]uint64, len(s))
	done, key := int64(0), make([]byte, 16)
	for i := range s {
		binary.NativeEndian.PutUint64(key[8:], s[i].Digest)
		keys[i] = wire.DigestOf(key)
		binary.NativeEndian.PutUint64(key, keys[i])
		done += s[i].Weight
		ends[i] = int64(float64(done) * float64(tokens) / float64(weight))
	}
	if r.Marked {
		return m.marked(r, s, ends, keys, tokens, at)
	}
	return m.longest(r, ends, keys, tokens, at)
}

func (m *Machine) marked(r *Rates, s Sequence, ends []int64, keys []uint64, tokens int64, at time.Time) (u wire.Usage) {
	hit := -1
	for i := range s {
		if s[i].TTL == 0 {
			continue
		}
		blocks := 0
		for j := i; j > hit && blocks < lookBack; j-- {
			if m.refresh(keys[j], at) {
				hit, u.Read = j, ends[j]
				break
			}
			blocks += s[j].Blocks
		}
	}
	done := u.Read
	for i := range s {
		if s[i].TTL == 0 || ends[i] < r.Minimum {
			continue
		}
		if i > hit {
			if s[i].TTL > 5*time.Minute {
				u.Write1h += ends[i] - done
			} else {
				u.Write5m += ends[i] - done
			}
			done = ends[i]
		}
		m.store(keys[i], s[i].TTL, at)
	}
	u.Input = tokens - done
	return u
}

// step is in how many tokens prefixes without markers are counted.
const step = 128

func (m *Machine) longest(r *Rates, ends []int64, keys []uint64, tokens int64, at time.Time) (u wire.Usage) {
	for i := range keys {
		if m.refresh(keys[i], at) && ends[i] >= r.Minimum {
			u.Read = ends[i] / step * step
		}
		m.store(keys[i], r.Life, at)
	}
	u.Input = tokens - u.Read
	if r.Write5m > 1 && tokens >= r.Minimum {
		u.Write5m, u.Input = u.Input, 0
	}
	return u
}

func (m *Machine) refresh(k uint64, at time.Time) bool {
	e, ok := m.entries[k]
	if !ok || !at.Before(e.until) {
		return false
	}
	e.until = at.Add(e.life)
	m.entries[k] = e
	return true
}

func (m *Machine) store(k uint64, life time.Duration, at time.Time) {
	if e := m.entries[k]; e.life > life && at.Before(e.until) {
		life = e.life
	}
	m.entries[k] = entry{at.Add(life), life}
}
