package mailboxtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// auditPage is shorter than the lists are.
const auditPage = 40

// audit compares what a store lists with all models, when nothing is under way.
type audit struct {
	store   mailbox.Store
	players []*player
	// wrong is what differs.
	wrong []string
}

// run compares before and after what is terminal was dropped.
func (a *audit) run(ctx context.Context) error {
	for _, do := range []func(context.Context) error{a.threads, a.dispatches, a.purge, a.threads, a.dispatches} {
		if err := do(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (a *audit) same(what string, got, want []string) {
	if !slices.Equal(got, want) {
		a.wrong = append(a.wrong, fmt.Sprintf("%s: %q, want %q", what, got, want))
	}
}

func (a *audit) equal(what string, got, want int) {
	if got != want {
		a.wrong = append(a.wrong, fmt.Sprintf("%s: %d, want %d", what, got, want))
	}
}

func (a *audit) threads(ctx context.Context) error {
	var all, queued, waiting []string
	claims := 0
	for _, p := range a.players {
		m, thread := p.model, p.prefix+modelThread
		if m.epoch > 0 || m.seq > 0 {
			all = append(all, thread)
		}
		if len(m.queue()) > 0 {
			queued = append(queued, thread)
		}
		if r := m.runs[m.open]; r != nil && r.status == mailbox.RunWaiting {
			waiting = append(waiting, thread)
		}
		if m.claim != nil {
			claims++
		}
	}
	var heads [3][]mailbox.Head
	for i, q := range []mailbox.ThreadQuery{{}, {Queued: true}, {Wait: modelWaits}} {
		var err error
		if heads[i], err = a.list(ctx, q); err != nil {
			return err
		}
	}
	a.same("threads", names(heads[0]), sorted(all))
	a.same("threads with a queue", names(heads[1]), sorted(queued))
	a.same("threads that wait", names(heads[2]), sorted(waiting))
	counted, err := a.store.Claims(ctx)
	if err != nil {
		return err
	}
	a.equal("claims counted", counted[""], claims)
	return a.due(ctx, heads[0])
}

// dispatches compares the dispatches of each status, and their number, with those of all models.
func (a *audit) dispatches(ctx context.Context) error {
	want := map[mailbox.Status][]string{}
	for _, p := range a.players {
		for id, d := range p.model.dispatches {
			want[d.status] = append(want[d.status], p.prefix+id)
		}
	}
	counts, err := a.store.Count(ctx)
	if err != nil {
		return err
	}
	for _, status := range append([]mailbox.Status{mailbox.Queued, mailbox.Claimed}, terminal...) {
		list, err := a.store.Dispatches(ctx, mailbox.DispatchQuery{Statuses: []mailbox.Status{status}, Limit: modelShare*modelIDs + 1})
		if err != nil {
			return err
		}
		a.same("dispatches listed as "+string(status), sorted(ids(list)), sorted(want[status]))
		a.equal("dispatches counted as "+string(status), counts.Status[status], len(want[status]))
	}
	return nil
}

func names(heads []mailbox.Head) (out []string) {
	for i := range heads {
		out = append(out, heads[i].Thread)
	}
	return out
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// list lists heads, page by page.
func (a *audit) list(ctx context.Context, q mailbox.ThreadQuery) (all []mailbox.Head, err error) {
	for q.Limit = auditPage; ; q.After = all[len(all)-1].Thread {
		page, err := a.store.Threads(ctx, q)
		if all = append(all, page...); err != nil || len(page) < auditPage {
			return all, err
		}
	}
}

// due compares what is due at several times with what the heads say.
func (a *audit) due(ctx context.Context, heads []mailbox.Head) error {
	heads = slices.DeleteFunc(heads, func(h mailbox.Head) bool { return h.DueAt.IsZero() })
	slices.SortFunc(heads, func(a, b mailbox.Head) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.Thread, b.Thread))
	})
	begin := NewClock().Now()
	for _, by := range []time.Time{begin.Add(-time.Second), begin.Add(time.Minute), begin.Add(5 * time.Minute), begin.Add(time.Hour)} {
		var want []string
		var later time.Time
		for i := range heads {
			switch h := &heads[i]; {
			case !h.DueAt.After(by):
				want = append(want, h.Thread)
			case later.IsZero() || h.DueAt.Before(later):
				later = h.DueAt
			}
		}
		for _, limit := range []int{len(heads) + 1, auditPage} {
			due, next, err := a.store.Due(ctx, mailbox.DueQuery{By: by, Limit: limit})
			if err != nil {
				return err
			}
			a.same("due", names(due), want[:min(limit, len(want))])
			if !next.Equal(later) {
				a.wrong = append(a.wrong, fmt.Sprintf("of what is not due by %v the first is due at %v, want %v", by, next, later))
			}
		}
	}
	return nil
}

// purge drops what is terminal, from the models, too.
func (a *audit) purge(ctx context.Context) error {
	want, got := 0, 0
	for _, p := range a.players {
		maps.DeleteFunc(p.model.dispatches, func(_ string, d *modelDispatch) bool {
			if d.status.Terminal() {
				want++
			}
			return d.status.Terminal()
		})
	}
	q := mailbox.PurgeQuery{Statuses: terminal, Before: NewClock().Now().Add(24 * time.Hour), Limit: auditPage}
	for more := true; more; {
		n, err := a.store.Purge(ctx, q)
		if err != nil {
			return err
		}
		got, more = got+n, n == q.Limit
	}
	a.equal("dispatches dropped", got, want)
	return nil
}
