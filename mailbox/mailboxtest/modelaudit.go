package mailboxtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// auditPage is shorter than the lists are.
const auditPage = 40

// audit compares what a store lists with all models, when nothing is under way.
type audit struct {
	box     *mailbox.Mailbox
	players []*player
	// wrong is what differs.
	wrong []string
}

// run compares before and after what is terminal was dropped.
func (a *audit) run(ctx context.Context, s store.Store) (err error) {
	const age = time.Minute
	a.box, err = mailbox.New(ctx, mailbox.Config{
		Store: s, Runtime: newHands(), Lease: mailbox.Lease{Skew: -1}, Now: func() time.Time { return NewClock().Now().AddDate(1, 0, 0) },
		Retention: mailbox.Retention{TTL: age, DeadTTL: age},
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, a.box.Close(context.WithoutCancel(ctx))) }()
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
		if r := m.runs[m.open]; r != nil && r.status == mailbox.RunWaiting && r.wait == modelWaits {
			waiting = append(waiting, thread)
		}
		if m.claim != nil {
			claims[p.in(modelTenant)] = 1
		}
		if m.halted {
			paused = append(paused, p.in(modelTenant))
		}
	}
	var records [4][]mailbox.Thread
	for i, q := range []mailbox.ThreadQuery{{}, {Queued: true}, {Wait: modelWaits}, {Tenant: tenant}} {
		var err error
		if records[i], err = a.list(ctx, q); err != nil {
			return err
		}
	}
	a.same("threads", names(records[0]), sorted(all))
	a.same("threads with a queue", names(records[1]), sorted(queued))
	a.same("threads that wait", names(records[2]), sorted(waiting))
	a.same("threads of a tenant", names(records[3]), own)
	counted, err := a.box.Claims(ctx)
	if err != nil {
		return err
	}
	if !maps.Equal(counted, claims) {
		a.wrong = append(a.wrong, fmt.Sprintf("claims counted: %v, want %v", counted, claims))
	}
	return a.pauses(ctx, sorted(paused))
}

// pauses compares the tenants that are paused, also while all are.
func (a *audit) pauses(ctx context.Context, want []string) error {
	for _, all := range []bool{true, false} {
		if err := a.pause(ctx, all); err != nil {
			return err
		}
		got, err := a.box.Pauses(ctx)
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

// pause pauses all tenants, or ends that.
func (a *audit) pause(ctx context.Context, all bool) error {
	if all {
		return a.box.Pause(ctx, "")
	}
	return a.box.Resume(ctx, "")
}

// dispatches compares the dispatches of each status, and their number, with those of all models.
func (a *audit) dispatches(ctx context.Context) error {
	want := map[mailbox.Status][]string{}
	for _, p := range a.players {
		for id, d := range p.model.dispatches {
			want[d.status] = append(want[d.status], p.prefix+id)
		}
	}
	counts, err := a.box.Count(ctx)
	if err != nil {
		return err
	}
	for _, status := range append([]mailbox.Status{mailbox.Queued, mailbox.Claimed}, terminal...) {
		list, err := a.box.Dispatches(ctx, mailbox.DispatchQuery{Statuses: []mailbox.Status{status}, Limit: modelShare*modelIDs + 1})
		if err != nil {
			return err
		}
		a.same("dispatches listed as "+string(status), sorted(ids(list)), sorted(want[status]))
		a.equal("dispatches counted as "+string(status), counts[status], len(want[status]))
	}
	return nil
}

func names(records []mailbox.Thread) (out []string) {
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
func (a *audit) list(ctx context.Context, q mailbox.ThreadQuery) (all []mailbox.Thread, err error) {
	for q.Limit = auditPage; ; q.After = all[len(all)-1].ID {
		page, err := a.box.Threads(ctx, q)
		if all = append(all, page...); err != nil || len(page) < auditPage {
			return all, err
		}
	}
}

// purge drops what is terminal, from the models, too.
func (a *audit) purge(ctx context.Context) error {
	for _, p := range a.players {
		maps.DeleteFunc(p.model.dispatches, func(_ string, d *modelDispatch) bool { return d.status.Terminal() })
	}
	return a.box.GC(ctx)
}
