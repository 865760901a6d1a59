package proxy_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store/memstore"
)

// upstreamLog checks what a provider gets from one session.
type upstreamLog struct {
	t      testing.TB
	proto  wire.Protocol
	mu     sync.Mutex
	before []uint64
	tools  string
	breaks int
	bodies [][]byte
}

// add counts the requests whose items do not begin with those of the request before.
func (l *upstreamLog) add(body []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	r, err := wire.Parse(l.proto, body)
	if err != nil {
		l.t.Error(err)
		return
	}
	var now []uint64
	for i := range r.Items {
		now = append(now, r.Digest(i))
	}
	for i, d := range l.before {
		if i >= len(now) || now[i] != d {
			l.breaks++
			break
		}
	}
	if n := r.Marks(); n > 4 {
		l.t.Errorf("%d markers", n)
	}
	l.before = now
	l.tools = string(r.Top["tools"].Of(body))
	l.bodies = append(l.bodies, append([]byte(nil), body...))
}

// work is a model that calls a tool in each round, and talks at the end of a turn.
func work(l *upstreamLog, rounds int) func(providertest.Query) providertest.Answer {
	return func(q providertest.Query) providertest.Answer {
		l.add(q.Body)
		if q.N%rounds == 0 {
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text(fmt.Sprintf("Turn %d is done.", q.N/rounds))}}
		}
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("next")}, Calls: []abi.ToolCall{call(fmt.Sprintf("call_%d", q.N), "bash", fmt.Sprintf("cat file%d.go", q.N))}}
	}
}

func policy() *proxy.Compaction {
	return &proxy.Compaction{Policy: compaction.Policy{WindowTokens: 200_000, ThresholdTokens: 60_000, KeepRecentTokens: 12_000, SummaryTokens: 3000}}
}

const output = 12_000

// session works through turns. A model takes seconds to answer, in which compactions end.
func session(tb testing.TB, s *stand, a *agent, turns int) (peak int64) {
	tb.Helper()
	n := 0
	for turn := range turns {
		a.say(fmt.Sprintf("Task %d: read the files.", turn))
		peak = max(peak, rounds(tb, s, a, &n))
	}
	return peak
}

// rounds works through one turn, whose calls are counted by n.
func rounds(tb testing.TB, s *stand, a *agent, n *int) (peak int64) {
	tb.Helper()
	for {
		*n++
		ans := a.step()
		wait(tb, "compactions end", func() bool { c := s.Report().Counts; return c["active"] == 0 && c["compacting"] == 0 })
		peak = max(peak, ans.Usage.Prompt())
		if len(ans.Calls()) == 0 {
			return peak
		}
		a.answer(ans, func(c wire.Out) string {
			return fmt.Sprintf("package p%d // %s\n%s", *n, c.ID, strings.Repeat("some words of code. ", output/20))
		})
	}
}

func cost(bills []providertest.Bill) (sum float64, failed int) {
	for _, b := range bills {
		sum += b.Cost
		if b.Failed {
			failed++
		}
	}
	return sum, failed
}

// Sixty rounds with large outputs: the conversation is compacted several times while the client notices nothing, no
// request is refused, the prefix changes only at swaps, and the bill is smaller (acceptance 13 to 15 without the
// programs, 26, 27, 44, 45; F1, F2, F12).
func TestSwap(t *testing.T) {
	t.Parallel()
	for _, p := range []wire.Protocol{wire.Messages, wire.Responses, wire.Chat} {
		for _, shape := range []struct{ turns, rounds int }{{6, 10}, {1, 60}} {
			if shape.turns == 1 && (p != wire.Messages || proxy.UnderRace) { // make test-plain has all
				continue
			}
			t.Run(fmt.Sprintf("%s/%dx%d", p, shape.turns, shape.rounds), func(t *testing.T) {
				t.Parallel()
				run := func(cfg proxy.Config) (float64, *upstreamLog, *proxy.Report, int64) {
					l := &upstreamLog{t: t, proto: p}
					up := fake(t, work(l, shape.rounds))
					s := start(t, up.URL(), cfg)
					a := newAgent(t, p, s.url, true, "X-Session-Id", "s1")
					a.mark = true
					peak := session(t, s, a, shape.turns)
					sum, failed := cost(up.Bills())
					if failed > 0 {
						t.Errorf("%d requests failed", failed)
					}
					return sum, l, s.Report(), peak
				}
				direct, _, base, peak0 := run(proxy.Config{})
				with, l, r, peak := run(proxy.Config{Compaction: policy(), Store: memstore.New()})
				t.Logf("direct %.3f USD, peak %d; with %.3f (%.2f), peak %d, %d swaps, %d breaks; machine error %.4f and %.4f; ledger %+v", direct, peak0, with, with/direct, peak,
					r.Counts["swaps"], l.breaks, base.Total.MachineError, r.Total.MachineError, *orNaN(r.Total.SavedWithout))
				if r.Counts["swaps"] < 2 || int64(l.breaks) > r.Counts["swaps"] {
					t.Errorf("%d swaps, %d breaks", r.Counts["swaps"], l.breaks)
				}
				if with >= direct || peak > 110_000 {
					t.Errorf("cost %.3f of %.3f, peak %d", with, direct, peak)
				}
				if base.Total.MachineError > 0.02 || r.Total.MachineError > 0.02 {
					t.Errorf("machine errors %.4f, %.4f", base.Total.MachineError, r.Total.MachineError)
				}
				if r.Total.Paid.Calls != int64(shape.turns*shape.rounds) {
					t.Errorf("%d calls in the ledger", r.Total.Paid.Calls)
				}
			})
		}
	}
}

func orNaN(f *float64) *float64 {
	if f == nil {
		var z float64
		return &z
	}
	return f
}
