package natsstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/mailbox"
)

// tally is how many dispatches of a thread have a status.
type tally struct {
	status mailbox.Status
	n      int
}

func tallies(counts map[mailbox.Status]int) []tally {
	out := make([]tally, 0, len(counts))
	for status, n := range counts {
		out = append(out, tally{status, n})
	}
	return out
}

// census counts the dispatches of all threads, and finds those threads that have some of a status. It belongs to a mirror.
type census struct {
	dispatches map[mailbox.Status]int
	// having are the threads with dispatches of a status, and ended those with terminal ones, by the oldest.
	having map[mailbox.Status]*btree.Set[string]
	ended  *btree.BTreeG[ended]
}

// ended is a thread with terminal dispatches.
type ended struct {
	oldest time.Time
	thread string
}

func newCensus() *census {
	less := func(a, b ended) bool { return cmp.Or(a.oldest.Compare(b.oldest), cmp.Compare(a.thread, b.thread)) < 0 }
	return &census{
		dispatches: map[mailbox.Status]int{}, having: map[mailbox.Status]*btree.Set[string]{},
		ended: btree.NewBTreeGOptions(less, btree.Options{NoLocks: true}),
	}
}

// count adds a thread once, or takes it out for -1.
func (c *census) count(thread string, s summary, once int) {
	terminal := false
	for _, x := range s.counts {
		terminal = terminal || x.status.Terminal()
		if c.dispatches[x.status] += once * x.n; c.dispatches[x.status] == 0 {
			delete(c.dispatches, x.status)
		}
		set := c.having[x.status]
		switch {
		case set == nil:
			c.having[x.status] = new(btree.Set[string])
			c.having[x.status].Insert(thread)
		case once > 0:
			set.Insert(thread)
		default:
			set.Delete(thread)
		}
	}
	switch e := (ended{s.oldest, thread}); {
	case terminal && once > 0:
		c.ended.Set(e)
	case terminal:
		c.ended.Delete(e)
	}
}

// threads are those with dispatches of some statuses, or of any for none.
func (c *census) threads(statuses []mailbox.Status) (ids []string) {
	for status, set := range c.having {
		if wanted(statuses, status) {
			ids = append(ids, set.Keys()...)
		}
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// before are the threads with a terminal dispatch that may have changed before a time.
func (c *census) before(at time.Time) (ids []string) {
	c.ended.Scan(func(e ended) bool {
		if !e.oldest.Before(at) {
			return false
		}
		ids = append(ids, e.thread)
		return true
	})
	return ids
}
