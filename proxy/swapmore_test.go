package proxy_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// originals is a summarizer that checks what it gets.
type originals struct {
	t  *testing.T
	mu sync.Mutex
	n  int
}

func (o *originals) Summarize(_ context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
	if len(r.Messages) == 0 || !strings.Contains(r.Messages[0].Text(), "Task 0") || r.PreviousSummary != nil {
		o.t.Errorf("summary %d is not made of originals", o.n)
	}
	for i := range r.Messages {
		if strings.Contains(r.Messages[i].Text(), "mortise: summary") {
			o.t.Errorf("summary %d is made of a summary", o.n)
		}
	}
	return &abi.Summary{Text: fmt.Sprintf("Summary %d of %d messages.", o.n, len(r.Messages))}, nil
}

// A later compaction is made from originals, and recall returns what was there, word for word: also in a session that was forked from this
// one, after the thread of this one was deleted (acceptance 41; F21, F22, F25).
func TestOriginals(t *testing.T) {
	t.Parallel()
	var seen []string
	l := &upstreamLog{t: t, proto: wire.Messages}
	var handle, latest string
	up := fake(t, func(q providertest.Query) providertest.Answer {
		l.add(q.Body)
		for id, text := range results(q) {
			if strings.HasPrefix(id, "recall_") && id > latest {
				latest = id
				seen = append(seen, text)
			}
		}
		for _, m := range q.Messages {
			if _, rest, ok := strings.Cut(m.Text(), "by these handles: "); ok {
				handle, _, _ = strings.Cut(rest, ",")
			}
		}
		last := q.Messages[len(q.Messages)-1]
		switch {
		case last.Text() == "recall it":
			return providertest.Answer{Calls: []abi.ToolCall{{ID: fmt.Sprintf("recall_%04d", q.N), Name: "mortise_recall", Arguments: map[string]any{"handle": strings.TrimSpace(handle), "query": "package p3"}}}}
		case strings.HasPrefix(last.ToolCallID, "recall_"):
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("recalled")}}
		case q.N%30 == 0:
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("turn done")}}
		}
		return providertest.Answer{Calls: []abi.ToolCall{call(fmt.Sprintf("call_%d", q.N), "bash", "cat")}}
	})
	c, db := policy(), memstore.New()
	o := &originals{t: t}
	c.Summarizer = o
	s := start(t, up.URL(), proxy.Config{Compaction: c, Store: db})
	a := newAgent(t, wire.Messages, s.url, true, "X-Session-Id", "s")
	session(t, s, a, 2)
	if s.Report().Counts["swaps"] < 2 || o.n < 2 {
		t.Fatalf("%d summaries, %v", o.n, s.Report().Counts)
	}
	fork := *a
	fork.items, fork.header = slices.Clone(a.items), []string{"X-Session-Id", "forked"}
	recalled := func(a *agent) {
		t.Helper()
		seen = nil
		a.say("recall it")
		ans := a.step()
		if ans.Text() != "recalled" || contains(a.raw, "mortise_recall") || len(seen) == 0 || !strings.Contains(seen[0], "package p3 //") || strings.Count(seen[0], "some words of code.") < output/20 {
			t.Errorf("recalled %.300q, the client got %.300s, handle %s", seen, a.raw, handle)
		}
		if sent := l.bodies[len(l.bodies)-1]; !contains(sent, "mortise: summary") {
			t.Error("the compaction is lost")
		}
	}
	recalled(a)
	main := s.Report().Lanes[0].ID
	recalled(&fork)
	settle(t, s)
	if _, err := db.Apply(t.Context(), store.Batch{Thread: main, Base: store.AnyRevision, Drop: true}); err != nil {
		t.Fatal(err)
	}
	recalled(&fork)
	if lanes := s.Report().Lanes; len(lanes) == 0 || !slices.ContainsFunc(lanes, func(l proxy.LaneReport) bool { return l.Parent == main }) {
		t.Errorf("lanes %+v", lanes)
	}
}

// clock is a time that tests set.
type clock struct {
	mu sync.Mutex
	at time.Time
}

func (c *clock) now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at
}

func (c *clock) add(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.at = c.at.Add(d)
}

// A compaction that does not pay while the provider's cache is warm is put in once it is cold, and not a second before
// (acceptance 47).
func TestCold(t *testing.T) {
	t.Parallel()
	for _, wait := range []time.Duration{5*time.Minute - time.Second, 5*time.Minute + time.Second} {
		c := &clock{at: time.Unix(1_800_000_000, 0)}
		l := &upstreamLog{t: t, proto: wire.Messages}
		model, err := providertest.New(providertest.Config{Now: c.now, Reply: work(l, 100)})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = model.Close() })
		p := policy()
		p.Expected = 8
		s := start(t, model.URL(), proxy.Config{Compaction: p, Now: c.now})
		a := newAgent(t, wire.Messages, s.url, true, "X-Session-Id", "s")
		a.mark = true
		a.say("go")
		step := func() {
			ans := a.step()
			settle(t, s)
			a.answer(ans, func(wire.Out) string { return strings.Repeat("some words of code. ", output/20) })
		}
		for s.Report().Counts["compactions"] == 0 {
			step()
		}
		if s.Report().Counts["swaps"] != 0 {
			t.Fatal("it was put in already")
		}
		// Much comes behind what would be replaced, so that it does not pay.
		a.items = append(a.items[:len(a.items)-1], strings.Replace(a.items[len(a.items)-1], "some words", strings.Repeat("other words ", 20_000), 1))
		c.add(wait)
		a.step()
		if got, want := s.Report().Counts["swaps"], int64(0); (got != want) != (wait > 5*time.Minute) {
			t.Errorf("after %s: %d swaps", wait, got)
		}
	}
}

func settle(tb testing.TB, s *stand) {
	tb.Helper()
	wait(tb, "compactions end", func() bool { c := s.Report().Counts; return c["active"] == 0 && c["compacting"] == 0 })
}

// A prompt that the provider refuses as too long is asked once more with the compaction that is ready (section 6).
func TestOverflow(t *testing.T) {
	t.Parallel()
	l := &upstreamLog{t: t, proto: wire.Messages}
	overflows(t, fake(t, work(l, 1000)).URL())
}

func overflows(t *testing.T, upstream string) {
	t.Helper()
	p := policy()
	p.Expected, p.Policy.WindowTokens = 8, 1_000_000
	s := start(t, upstream, proxy.Config{Compaction: p})
	a := newAgent(t, wire.Messages, s.url, true, "X-Session-Id", "s")
	a.say("go")
	for s.Report().Counts["compactions"] == 0 {
		a.answer(a.step(), func(wire.Out) string { return strings.Repeat("some words of code. ", output/20) })
		settle(t, s)
	}
	n := len(a.items) - 1
	a.items[n] = strings.Replace(a.items[n], "some words", strings.Repeat("other words ", 50_000), 1)
	a.step()
	if c := s.Report().Counts; c["overflows"] != 1 || c["swaps"] != 1 {
		t.Errorf("%v", c)
	}
}
