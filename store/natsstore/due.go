package natsstore

import (
	"cmp"
	"slices"
	"time"

	"github.com/tidwall/btree"

	"github.com/mortise-dev/mortise/mailbox"
)

// due is a thread in an index.
type due struct {
	at     time.Time
	rank   int64
	thread string
	tenant string
}

func dueOf(h mailbox.Head) *due {
	return &due{at: h.DueAt, rank: h.Rank, thread: h.Thread, tenant: h.Tenant}
}

func bySoon(a, b *due) int { return cmp.Or(a.at.Compare(b.at), cmp.Compare(a.thread, b.thread)) }

func byRank(a, b *due) int {
	return cmp.Or(cmp.Compare(a.rank, b.rank), cmp.Compare(a.thread, b.thread))
}

type dueTree = btree.BTreeG[*due]

func newDueTree(compare func(a, b *due) int) *dueTree {
	return btree.NewBTreeGOptions(func(a, b *due) bool { return compare(a, b) < 0 }, btree.Options{NoLocks: true})
}

// agenda says which threads are due. It belongs to a mirror.
type agenda struct {
	// times has the threads that are due some time, by it, ready those that are by the clock, by rank, and tenants those of each tenant.
	times, ready *dueTree
	tenants      map[string]*dueTree
	clock        time.Time
}

func newAgenda() *agenda {
	return &agenda{times: newDueTree(bySoon), ready: newDueTree(byRank), tenants: map[string]*dueTree{}, clock: time.Now()}
}

func (a *agenda) put(d *due) {
	a.times.Set(d)
	if !d.at.After(a.clock) {
		a.come(d)
	}
}

func (a *agenda) drop(d *due) {
	a.times.Delete(d)
	a.leave(d)
}

// come makes a thread ready, leave makes it not.
func (a *agenda) come(d *due) {
	a.ready.Set(d)
	of := a.tenants[d.tenant]
	if of == nil {
		of = newDueTree(byRank)
		a.tenants[d.tenant] = of
	}
	of.Set(d)
}

func (a *agenda) leave(d *due) {
	a.ready.Delete(d)
	of := a.tenants[d.tenant]
	if of == nil {
		return
	}
	of.Delete(d)
	if of.Len() == 0 {
		delete(a.tenants, d.tenant)
	}
}

// at sets the clock: whoever asks may have another one than the one before.
func (a *agenda) at(now time.Time) {
	from, to, move := a.clock, now, a.come
	if now.Before(a.clock) {
		from, to, move = now, a.clock, a.leave
	}
	a.times.Ascend(&due{at: from}, func(d *due) bool {
		if d.at.After(to) {
			return false
		}
		if d.at.After(from) {
			move(d)
		}
		return true
	})
	a.clock = now
}

// readAhead is how many that are ready are looked at before the search goes by tenant.
const readAhead = 256

// due answers [mailbox.Store.Due].
func (a *agenda) due(q mailbox.DueQuery) (list []*due, next time.Time) {
	a.at(q.By)
	q.Limit = max(q.Limit, 0)
	a.times.Ascend(&due{at: q.By.Add(1)}, func(d *due) bool {
		next = d.at
		return false
	})
	list, all := pick(a.ready, q, max(readAhead, 4*q.Limit))
	if all {
		return list, next
	}
	list = nil
	for tenant, of := range a.tenants {
		if !slices.Contains(q.Skip, tenant) {
			some, _ := pick(of, q, q.Limit)
			list = append(list, some...)
		}
	}
	slices.SortFunc(list, byRank)
	return list[:min(q.Limit, len(list))], next
}

// pick takes the first ones that are asked for among some, and says whether no others would come before them.
func pick(from *dueTree, q mailbox.DueQuery, some int) (list []*due, all bool) {
	looked := 0
	from.Scan(func(d *due) bool {
		if len(list) == q.Limit || looked == some {
			return false
		}
		looked++
		if !slices.Contains(q.Skip, d.tenant) {
			list = append(list, d)
		}
		return true
	})
	return list, len(list) == q.Limit || looked == from.Len()
}
