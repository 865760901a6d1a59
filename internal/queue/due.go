package queue

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// DueQuery asks for threads.
type DueQuery struct {
	// By is when they are due at the latest.
	By time.Time
	// Skip are tenants that are left out.
	Skip  []string
	Limit int
}

// overdue is how many threads that have become due since they were written are read in one poll, at least.
const overdue = 256

// Due returns threads that are due, by rank and then by thread, and when the first one will be due that is not yet; zero if none will
// be, or if there are more than the limit. It costs the same however many threads and dispatches there are. Threads that were due when they were written are in the order of their ranks; those that have become due since
// are sorted in among them, the first overdue ones by time.
func (q *Queue) Due(ctx context.Context, query DueQuery) (due []Thread, next time.Time, err error) {
	if query.Limit <= 0 {
		return nil, time.Time{}, context.Cause(ctx)
	}
	type list struct {
		threads []Thread
		next    time.Time
		err     error
	}
	first := make(chan list, 1) // at once: each is a round trip
	go func() {
		var l list
		l.threads, l.next, l.err = q.later(ctx, query)
		first <- l
	}()
	ready, err := q.scanThreads(ctx, store.Scan{Index: indexReady}, query.Limit, func(t Thread) bool {
		if t.DueAt.After(query.By) {
			next = Earliest(next, t.DueAt)
			return false
		}
		return !slices.Contains(query.Skip, t.Tenant)
	})
	later := <-first
	if err != nil || later.err != nil {
		return nil, time.Time{}, cmp.Or(err, later.err)
	}
	next, due = Earliest(next, later.next), slices.Concat(ready, later.threads)
	slices.SortStableFunc(due, func(a, b Thread) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.ID, b.ID))
	})
	return due[:min(len(due), query.Limit)], next, nil
}

// later returns the threads that have become due, and when the first of the others will be.
func (q *Queue) later(ctx context.Context, query DueQuery) (due []Thread, next time.Time, err error) {
	limit := max(2*query.Limit, overdue)
	stop := errors.New("stop")
	err = q.scan(ctx, store.Scan{Index: indexLater, Values: true}, limit+1, func(ref store.Ref) error {
		at, err := store.ParseNumber(ref.IndexKey)
		if err != nil {
			return err
		}
		if next = time.UnixMilli(at).UTC(); next.After(query.By) || len(due) == limit {
			return stop
		}
		next = time.Time{}
		if t := threadOf(ref); !slices.Contains(query.Skip, t.Tenant) {
			due = append(due, t)
		}
		return nil
	})
	if errors.Is(err, stop) {
		err = nil
	}
	return due, next, err
}
