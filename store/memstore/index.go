package memstore

import (
	"time"

	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/mailbox"
)

// thread is what the store keeps of one.
type thread struct {
	head mailbox.Head
	log  []mailbox.Message
	// seqs finds messages by id.
	seqs  map[string]int
	image []byte
	// queue holds what is queued, by priority and Seq; holders those of them that are
	// holding, and times all of them by AvailableAt.
	queue, holders, times *btree.BTreeG[entry]
	// live finds what is not terminal by dedupe key, all holds every dispatch.
	live map[string]string
	all  *btree.BTreeG[entry]
}

func newThread(id string) *thread {
	return &thread{
		head: mailbox.Head{Thread: id}, seqs: map[string]int{}, live: map[string]string{},
		queue: sorted(entry.queuedBefore), holders: sorted(entry.queuedBefore), times: sorted(entry.dueBefore), all: sorted(entry.queuedBefore),
	}
}

// entry is a dispatch in an index.
type entry struct {
	id        string
	priority  uint8
	seq       uint64
	available time.Time
	changed   time.Time
}

func entryOf(d mailbox.Dispatch) entry {
	return entry{id: d.ID, priority: d.Priority, seq: d.Seq, available: d.AvailableAt, changed: d.UpdatedAt}
}

func (e entry) queuedBefore(o entry) bool {
	if e.priority != o.priority {
		return e.priority < o.priority
	}
	return e.seq < o.seq
}

func (e entry) dueBefore(o entry) bool {
	if !e.available.Equal(o.available) {
		return e.available.Before(o.available)
	}
	return e.seq < o.seq
}

func (e entry) changedBefore(o entry) bool {
	if !e.changed.Equal(o.changed) {
		return e.changed.Before(o.changed)
	}
	return e.id < o.id
}

// due is a thread in an index.
type due struct {
	thread string
	at     time.Time
	rank   int64
	tenant string
}

func dueOf(h mailbox.Head) due {
	return due{thread: h.Thread, at: h.DueAt, rank: h.Rank, tenant: h.Tenant}
}

func (d due) rankBefore(o due) bool {
	if d.rank != o.rank {
		return d.rank < o.rank
	}
	return d.thread < o.thread
}

func (d due) timeBefore(o due) bool {
	if !d.at.Equal(o.at) {
		return d.at.Before(o.at)
	}
	return d.thread < o.thread
}

func sorted[T any](less func(a, b T) bool) *btree.BTreeG[T] {
	return btree.NewBTreeGOptions(less, btree.Options{NoLocks: true})
}
