package mailboxtest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
)

// auditPage is shorter than the lists are.
const auditPage = 40

// audit compares what a store lists with all models, when nothing is under way.
type audit struct {
	queue   *queue.Queue
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
	var all, own, queued, waiting, paused []string
	tenant := a.players[0].in(modelTenant)
	claims := map[string]int{}
	for _, p := range a.players {
		m, thread := p.model, p.prefix+modelThread
		if m.epoch > 0 || m.seq > 0 {
			all = append(all, thread)
		}
		if p.in(modelTenant) == tenant && m.seq > 0 {
			own = append(own, thread)
		}
		if len(m.queue()) > 0 {
			queued = append(queued, thread)
		}
		if r := m.runs[m.open]; r != nil && r.status == queue.RunWaiting && r.wait == modelWaits {
			waiting = append(waiting, thread)
		}
		if m.claim != nil {
			claims[p.in(modelTenant)] = 1
		}
		if m.halted {
			paused = append(paused, p.in(modelTenant))
		}
	}
	var records [4][]queue.Thread
	for i, q := range []queue.ThreadQuery{{}, {Queued: true}, {Wait: modelWaits}, {Tenant: tenant}} {
		var err error
		if records[i], err = a.list(ctx, q); err != nil {
			return err
		}
	}
	a.same("threads", names(records[0]), sorted(all))
	a.same("threads with a queue", names(records[1]), sorted(queued))
	a.same("threads that wait", names(records[2]), sorted(waiting))
	a.same("threads of a tenant", names(records[3]), own)
	counted, err := a.queue.Claims(ctx)
	if err != nil {
		return err
	}
	if !maps.Equal(counted, claims) {
		a.wrong = append(a.wrong, fmt.Sprintf("claims counted: %v, want %v", counted, claims))
	}
	if err := a.pauses(ctx, sorted(paused)); err != nil {
		return err
	}
	return a.due(ctx, records[0])
}

// pauses compares the tenants that are paused, also while all are.
func (a *audit) pauses(ctx context.Context, want []string) error {
	for _, all := range []bool{true, false} {
		if err := a.queue.PauseTenant(ctx, "", all); err != nil {
			return err
		}
		got, err := a.queue.Pauses(ctx)
		if err != nil {
			return err
		}
		if all {
			a.same("paused, with all", got, append([]string{""}, want...))
		} else {
			a.same("paused", got, want)
		}
	}
	return nil
}

// dispatches compares the dispatches of each status, and their number, with those of all models.
func (a *audit) dispatches(ctx context.Context) error {
	want := map[queue.Status][]string{}
	for _, p := range a.players {
		for id, d := range p.model.dispatches {
			want[d.status] = append(want[d.status], p.prefix+id)
		}
	}
	counts, err := a.queue.Count(ctx)
	if err != nil {
		return err
	}
	for _, status := range append([]queue.Status{queue.Queued, queue.Claimed}, terminal...) {
		list, err := a.queue.Dispatches(ctx, queue.DispatchQuery{Statuses: []queue.Status{status}, Limit: modelShare*modelIDs + 1})
		if err != nil {
			return err
		}
		a.same("dispatches listed as "+string(status), sorted(ids(list)), sorted(want[status]))
		a.equal("dispatches counted as "+string(status), counts[status], len(want[status]))
	}
	return nil
}

func names(records []queue.Thread) (out []string) {
	for i := range records {
		out = append(out, records[i].ID)
	}
	return out
}

func sorted(list []string) []string {
	slices.Sort(list)
	return list
}

// list lists records, page by page.
func (a *audit) list(ctx context.Context, q queue.ThreadQuery) (all []queue.Thread, err error) {
	for q.Limit = auditPage; ; q.After = all[len(all)-1].ID {
		page, err := a.queue.Threads(ctx, q)
		if all = append(all, page...); err != nil || len(page) < auditPage {
			return all, err
		}
	}
}

// due compares what is due at several times with the thread records.
func (a *audit) due(ctx context.Context, records []queue.Thread) error {
	records = slices.DeleteFunc(records, func(h queue.Thread) bool { return h.DueAt.IsZero() })
	slices.SortFunc(records, func(a, b queue.Thread) int {
		return cmp.Or(cmp.Compare(a.Rank, b.Rank), cmp.Compare(a.ID, b.ID))
	})
	begin := NewClock().Now()
	for _, by := range []time.Time{begin.Add(-time.Second), begin.Add(time.Minute), begin.Add(5 * time.Minute), begin.Add(time.Hour)} {
		var want []string
		var later time.Time
		for i := range records {
			switch h := &records[i]; {
			case !h.DueAt.After(by):
				want = append(want, h.ID)
			case later.IsZero() || h.DueAt.Before(later):
				later = h.DueAt
			}
		}
		for _, limit := range []int{len(records) + 1, auditPage} {
			due, next, err := a.queue.Due(ctx, queue.DueQuery{By: by, Limit: limit})
			if err != nil {
				return err
			}
			a.same("due", names(due), want[:min(limit, len(want))])
			if len(due) < limit && !next.Equal(later) { // the listing ends with a full page
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
	q := queue.PurgeQuery{Statuses: terminal, Before: NewClock().Now().Add(24 * time.Hour), Limit: auditPage}
	for more := true; more; {
		n, err := a.queue.Purge(ctx, q)
		if err != nil {
			return err
		}
		got, more = got+n, n == q.Limit
	}
	a.equal("dispatches dropped", got, want)
	return nil
}
