package money

import (
	"math"
	"time"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// Totals are sums over calls. Units are tokens of fresh input.
type Totals struct {
	Calls int64      `json:"calls"`
	Usage wire.Usage `json:"usage"`
	Units float64    `json:"units"`
	USD   float64    `json:"usd,omitempty"`
}

func (t *Totals) add(u wire.Usage, units, usd float64) {
	t.plus(&Totals{Calls: 1, Usage: u, Units: units, USD: units * usd}, 1)
}

func (t *Totals) plus(o *Totals, sign int64) {
	t.Calls += sign * o.Calls
	t.Usage.Input += sign * o.Usage.Input
	t.Usage.Read += sign * o.Usage.Read
	t.Usage.Write5m += sign * o.Usage.Write5m
	t.Usage.Write1h += sign * o.Usage.Write1h
	t.Usage.Output += sign * o.Usage.Output
	t.Units += float64(sign) * o.Units
	t.USD += float64(sign) * o.USD
}

// Ledger is what an account, or several, came to.
type Ledger struct {
	// Paid is what the provider counted, Own what the proxy's own requests cost, which is not in Paid.
	Paid Totals `json:"paid"`
	Own  Totals `json:"own"`
	// Machine is what the machine makes of what was sent. Without is what the client's own requests would have cost
	// without any compaction, and Compacting with the client's own at its threshold.
	Machine    Totals `json:"machine"`
	Without    Totals `json:"without_compaction"`
	Compacting Totals `json:"with_clients_compaction"`
	// Estimated counts calls whose original size is an estimate.
	Estimated int64 `json:"estimated,omitempty"`
	Swaps     int64 `json:"swaps,omitempty"`
	Uncounted int64 `json:"uncounted,omitempty"`
}

// MaxError is from which error of the machine on a saving is not known.
const MaxError = 0.05

// Missed is by how many units the machine misses what was paid. Of several accounts these are added up: they must not cancel out.
func (l *Ledger) Missed() float64 { return math.Abs(l.Machine.Units - l.Paid.Units) }

// Error is the share of what was paid that was missed.
func (l *Ledger) Error(missed float64) float64 {
	if l.Paid.Units == 0 {
		return 0
	}
	return missed / l.Paid.Units
}

// Savings are units saved against both worlds, less the proxy's own bill. They may be negative.
func (l *Ledger) Savings() (without, compacting float64) {
	return l.Without.Units - l.Machine.Units - l.Own.Units, l.Compacting.Units - l.Machine.Units - l.Own.Units
}

// Add adds another ledger.
func (l *Ledger) Add(o *Ledger) { l.plus(o, 1) }

// Subtract takes another ledger out.
func (l *Ledger) Subtract(o *Ledger) { l.plus(o, -1) }

func (l *Ledger) plus(o *Ledger, sign int64) {
	for _, p := range []struct{ to, from *Totals }{
		{&l.Paid, &o.Paid}, {&l.Own, &o.Own}, {&l.Machine, &o.Machine}, {&l.Without, &o.Without}, {&l.Compacting, &o.Compacting},
	} {
		p.to.plus(p.from, sign)
	}
	l.Estimated += sign * o.Estimated
	l.Swaps += sign * o.Swaps
	l.Uncounted += sign * o.Uncounted
}

// Account follows one lane.
type Account struct {
	Ledger

	// Ratio is how many tokens a byte of weight has been, by the latest count.
	Ratio float64 `json:"ratio,omitempty"`
	// Cut is how many items the client's own compaction would have replaced by now.
	Cut int `json:"cut,omitempty"`

	with, without, client *Machine
	warm                  bool
}

// Call is one request and what was counted for it.
type Call struct {
	At             time.Time
	Protocol       wire.Protocol
	Model          string
	Sent, Original Sequence
	// Same means that Sent is Original.
	Same    bool
	Usage   wire.Usage
	Counted bool
	// Threshold is at how many tokens the client would compact, 0 for never.
	Threshold int64
	// USD is the price of a token of fresh input, 0 where it is not known.
	USD float64
}

// Open makes an account usable after it was read. Its caches are empty: the first call is taken as it was billed.
func (a *Account) Open() {
	if a.with != nil {
		return
	}
	a.with, a.without, a.client = NewMachine(), NewMachine(), NewMachine()
}

// summaryTokens is how long a summary of a client is taken to be.
const summaryTokens = 4000

// Add accounts for a call.
func (a *Account) Add(c *Call) {
	if !c.Counted {
		a.Uncounted++
		return
	}
	a.Open()
	r := RatesOf(c.Protocol, c.Model)
	tokens := c.Usage.Prompt()
	if w := c.Sent.Weight(); w > 0 && tokens > 0 {
		a.Ratio = float64(tokens) / float64(w)
	}
	a.Paid.add(c.Usage, r.Units(c.Usage), c.USD)
	original := tokens
	if !c.Same {
		original = int64(float64(c.Original.Weight()) * a.Ratio)
		a.Estimated++
	}
	sums := []struct {
		m  *Machine
		to *Totals
		s  Sequence
		n  int64
	}{{a.with, &a.Machine, c.Sent, tokens}, {a.without, &a.Without, c.Original, original}}
	s, n := a.clients(&r, c, original)
	sums = append(sums, sums[0])
	sums[2].m, sums[2].to, sums[2].s, sums[2].n = a.client, &a.Compacting, s, n
	for _, sum := range sums {
		u := sum.m.Bill(&r, sum.s, sum.n, c.At)
		if !a.warm { // what was cached before this process is not known
			u = share(c.Usage, sum.n)
		}
		u.Output = c.Usage.Output
		sum.to.add(u, r.Units(u), c.USD)
	}
	a.warm = true
}

// share is a prompt of n tokens, split as the counted one was.
func share(u wire.Usage, n int64) wire.Usage {
	total := u.Prompt()
	if total == 0 || n == total {
		return u
	}
	f := float64(n) / float64(total)
	scale := func(v int64) int64 { return int64(float64(v) * f) }
	out := wire.Usage{Read: scale(u.Read), Write5m: scale(u.Write5m), Write1h: scale(u.Write1h)}
	out.Input = n - out.Prompt()
	return out
}

// clients returns the prompt that a client would send that compacts by itself.
func (a *Account) clients(r *Rates, c *Call, tokens int64) (Sequence, int64) {
	s, n := a.cut(c.Original, tokens)
	if c.Threshold == 0 || n < c.Threshold {
		return s, n
	}
	bill := a.client.Bill(r, s, n, c.At)
	bill.Output = summaryTokens
	a.Compacting.add(bill, r.Units(bill), c.USD)
	a.Cut = max(0, items(c.Original)-1)
	return a.cut(c.Original, tokens)
}

func items(s Sequence) (n int) {
	for i := range s {
		if s[i].Item {
			n++
		}
	}
	return n
}

// cut replaces the first items by a summary.
func (a *Account) cut(s Sequence, tokens int64) (Sequence, int64) {
	if a.Cut == 0 || a.Cut >= items(s) {
		return s, tokens
	}
	var out Sequence
	n := 0
	for i := range s {
		if !s[i].Item || n >= a.Cut {
			out = append(out, s[i])
		} else if n == 0 {
			out = append(out, Segment{Digest: uint64(a.Cut), Weight: int64(summaryTokens / a.Ratio), Blocks: 1, Item: true})
		}
		if s[i].Item {
			n++
		}
	}
	return out, int64(float64(out.Weight()) * a.Ratio)
}

// Self accounts for a request of the proxy's own. Its units are of the model that it used, in the client's: the caller
// converts them.
func (a *Account) Self(u wire.Usage, units, usd float64) { a.Own.add(u, units, usd) }

// Grown is how many tokens a prompt would have, by the latest ratio.
func (a *Account) Grown(s Sequence) int64 { return int64(float64(s.Weight()) * a.Ratio) }

// Continued accounts for a request that was made to continue an answer. The client had not made it by itself.
func (a *Account) Continued(u wire.Usage, units, usd float64) {
	a.Paid.add(u, units, usd)
	a.Machine.add(u, units, usd)
}
