package proxy

import (
	"sync"
	"sync/atomic"

	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/money"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// counters are what happened.
type counters struct {
	requests, active, answers, acted, observed, opaque, side, unread, ungated                                                      atomic.Int64
	refused, removed, rewritten, replaced, hidden, continued, late                                                                 atomic.Int64
	panics, storeFailures, unreachable, upstreamErrors, cuts                                                                       atomic.Int64
	compactions, compactionsFailed, compactionsRefused, swaps, overflows, counted, dropped, compacting, fellBack, clientKeyRefused atomic.Int64

	mu    sync.Mutex
	sides money.Totals
}

func (c *counters) addSide(u wire.Usage, units, usd float64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := money.Totals{Calls: 1, Usage: u, Units: units, USD: units * usd}
	l, o := money.Ledger{Own: c.sides}, money.Ledger{Own: t}
	l.Add(&o)
	c.sides = l.Own
}

// Report is what a server did, for operators. It has no text of any conversation.
type Report struct {
	Counts map[string]int64 `json:"counts"`
	// Total is over all lanes in memory, Side what requests besides them cost.
	Total Money        `json:"total"`
	Side  money.Totals `json:"side"`
	Lanes []LaneReport `json:"lanes"`
}

// Money is a ledger and what follows from it.
type Money struct {
	money.Ledger

	// Saved are units against no compaction at all and against the client's own; nil where the machine's error makes
	// them unknown. They may be negative.
	SavedWithout    *float64 `json:"saved_against_none"`
	SavedCompacting *float64 `json:"saved_against_clients"`
	MachineError    float64  `json:"machine_error"`
}

// LaneReport is one lane.
type LaneReport struct {
	ID       string        `json:"id"`
	Parent   string        `json:"parent,omitempty"`
	Protocol wire.Protocol `json:"protocol"`
	Session  string        `json:"session,omitempty"`
	Agent    string        `json:"agent,omitempty"`
	Epoch    int           `json:"epoch"`
	Calls    int           `json:"calls"`
	Runs     int           `json:"runs"`
	Swaps    int           `json:"swaps"`
	Items    int           `json:"items"`
	Money    Money         `json:"money"`
}

func moneyOf(l *money.Ledger, missed float64) Money {
	m := Money{Ledger: *l, MachineError: l.Error(missed)}
	if without, compacting := l.Savings(); m.MachineError <= money.MaxError && l.Paid.Calls > 0 {
		m.SavedWithout, m.SavedCompacting = &without, &compacting
	}
	return m
}

// Report returns what the server did so far.
func (s *Server) Report() *Report {
	c := &s.stats
	r := &Report{Counts: map[string]int64{}}
	for name, n := range map[string]*atomic.Int64{
		"requests": &c.requests, "active": &c.active, "answers": &c.answers, "acted": &c.acted, "observed_only": &c.observed,
		"opaque": &c.opaque, "side": &c.side, "unread": &c.unread, "ungated": &c.ungated, "refused": &c.refused, "calls_removed": &c.removed,
		"calls_rewritten": &c.rewritten, "answers_replaced": &c.replaced, "hidden_calls": &c.hidden, "continued": &c.continued, "late_effects": &c.late,
		"panics": &c.panics, "store_failures": &c.storeFailures, "unreachable": &c.unreachable, "upstream_errors": &c.upstreamErrors,
		"cuts": &c.cuts, "compactions": &c.compactions, "compactions_failed": &c.compactionsFailed,
		"compactions_refused": &c.compactionsRefused, "swaps": &c.swaps, "overflows": &c.overflows, "counted": &c.counted,
		"compactions_dropped": &c.dropped, "compacting": &c.compacting, "fell_back": &c.fellBack, "client_key_refused": &c.clientKeyRefused,
	} {
		r.Counts[name] = n.Load()
	}
	var total money.Ledger
	var missed float64
	s.lanes.All(func(l *lane.Lane) {
		l.Lock()
		defer l.Unlock()
		if l.Attached == nil || l.Money == nil {
			return
		}
		total.Add(&l.Money.Ledger)
		missed += l.Money.Missed()
		r.Lanes = append(r.Lanes, LaneReport{
			ID: l.ID, Parent: l.Parent, Protocol: l.Key.Protocol, Session: l.Key.Session, Agent: l.Key.Agent, Epoch: l.Epoch,
			Calls: l.Calls, Runs: l.Runs, Swaps: l.Swaps, Items: len(l.Hashes), Money: moneyOf(&l.Money.Ledger, l.Money.Missed()),
		})
	})
	r.Total = moneyOf(&total, missed)
	c.mu.Lock()
	r.Side = c.sides
	c.mu.Unlock()
	return r
}
