package proxy_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store/memstore"
)

// marker adds a context of its own to each run, so that a mix of threads is seen.
func marker() hook {
	var mu sync.Mutex
	n := map[string]int{}
	return hook{name: "marker", hooks: []abi.Hook{{Phase: abi.RunStart, Mode: abi.ModeTransform}}, answer: func(e *abi.Event) (*abi.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		n[e.Run.ThreadID]++
		text := fmt.Sprintf("CANARY %s %d", e.Run.ThreadID, n[e.Run.ThreadID])
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectAddContext, Context: &abi.ContextMessage{Key: "k", Content: []abi.ContentBlock{abi.Text(text)}}}}}, nil
	}}
}

// canaries are the threads whose contexts a request has.
func canaries(body []byte) map[string]int {
	out := map[string]int{}
	for s := range strings.SplitSeq(string(body), "CANARY ") {
		if id, _, ok := strings.Cut(s, " "); ok && strings.HasPrefix(id, "proxy-") {
			out[id]++
		}
	}
	return out
}

// Fifty interleaved sessions of one key with the same first words, and without any id, never see each other
// (acceptance 19; F18, F20).
func TestCanaries(t *testing.T) {
	t.Parallel()
	up := fake(t, func(q providertest.Query) providertest.Answer {
		text := q.Messages[len(q.Messages)-1].Text()
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text(fmt.Sprintf("answer %d to %.60s", q.N, text))}}
	})
	rnd := rand.New(rand.NewPCG(3, 4))
	s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, marker()), Store: memstore.New()})
	const sessions = 50
	list := make([]*agent, sessions)
	turns := make([]int, sessions)
	for i := range list {
		list[i] = newAgent(t, wire.Messages, s.url, i%2 == 0)
		list[i].say("Hello, please help me.")
	}
	for range 200 {
		i := rnd.IntN(sessions)
		a := list[i]
		a.step()
		turns[i]++
		a.say(fmt.Sprintf("next %d", turns[i]))
	}
	lanes := s.Report().Lanes
	active := 0
	for _, n := range turns {
		if n > 0 {
			active++
		}
	}
	if len(lanes) != active {
		t.Errorf("%d lanes of %d sessions", len(lanes), active)
	}
}

// Each request has contexts of one thread alone, though sessions share a key, a system prompt and their first words.
func TestCanaries_upstream(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	up := fake(t, func(q providertest.Query) providertest.Answer {
		mu.Lock()
		defer mu.Unlock()
		if c := canaries(q.Body); len(c) != 1 {
			t.Errorf("a request has contexts of %d threads: %v", len(c), c)
		}
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text(fmt.Sprintf("answer %d", q.N))}}
	})
	s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, marker())})
	var group sync.WaitGroup
	for i := range 20 {
		group.Go(func() {
			var header []string
			if i%2 == 0 {
				header = []string{"X-Session-Id", fmt.Sprint("s", i/4)} // two clients with one session id share nothing but it
			}
			a := newAgent(t, wire.Chat, s.url, true, header...)
			for j := range 5 {
				a.say(fmt.Sprintf("client %d says %d", i, j))
				a.step()
			}
		})
	}
	group.Wait()
}

// watch counts phases and shows what lanes become of.
func watch(seen *[]string) hook {
	var mu sync.Mutex
	h := hook{name: "watch", answer: func(e *abi.Event) (*abi.Reply, error) {
		mu.Lock()
		defer mu.Unlock()
		*seen = append(*seen, string(e.Phase)+" "+e.Run.ThreadID)
		return nil, nil
	}}
	for _, p := range []abi.Phase{abi.RunStart, abi.RunEnd} {
		h.hooks = append(h.hooks, abi.Hook{Phase: p, Mode: abi.ModeObserve})
	}
	return h
}

// A rewound conversation is a fork that keeps what the ancestor had; sub-agents and side requests are not the main
// thread; two credentials share nothing (acceptance 16, 17, 18, 20; F19).
func TestLanes(t *testing.T) {
	t.Parallel()
	up := fake(t, func(q providertest.Query) providertest.Answer {
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text(fmt.Sprintf("answer %d", q.N))}}
	})
	var seen []string
	s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, watch(&seen))})
	a := newAgent(t, wire.Messages, s.url, false, "X-Claude-Code-Session-Id", "s1")
	for i := range 3 {
		a.say(fmt.Sprint("turn ", i))
		a.step()
	}
	lanes := func() int { return len(s.Report().Lanes) }
	if lanes() != 1 {
		t.Fatalf("%d lanes of one session", lanes())
	}
	back := append([]string(nil), a.items[:4]...)
	a.items = back
	a.say("another way")
	a.step()
	if lanes() != 2 {
		t.Errorf("a fork makes %d lanes", lanes())
	}
	for i := range 5 {
		sub := newAgent(t, wire.Messages, s.url, false, "X-Claude-Code-Session-Id", "s1", "X-Claude-Code-Agent-Id", fmt.Sprint("a", i), "X-Claude-Code-Parent-Agent-Id", "a0")
		sub.say("turn 0")
		sub.step()
	}
	if lanes() != 7 {
		t.Errorf("with five sub-agents there are %d lanes", lanes())
	}
	before := len(seen)
	side := newAgent(t, wire.Messages, s.url, false, "X-Claude-Code-Session-Id", "s1")
	side.tools = nil
	side.say("a title, please")
	body := strings.Replace(side.body(), `"tools":[],`, "", 1)
	post(t, s.url+"/v1/messages", body, "X-Claude-Code-Session-Id", "s1")
	if lanes() != 7 || len(seen) != before || s.Report().Counts["side"] != 1 {
		t.Errorf("a side request changes a lane: %d lanes", lanes())
	}
	a.say("and on")
	a.step()
	if lanes() != 7 {
		t.Errorf("the session continues in another lane: %d", lanes())
	}
}

// A client that compacts by itself begins a new epoch of its thread (acceptance 24).
func TestClientCompacts(t *testing.T) {
	t.Parallel()
	up := fake(t, nil)
	s := start(t, up.URL(), proxy.Config{})
	a := newAgent(t, wire.Messages, s.url, false, "X-Claude-Code-Session-Id", "s1")
	for i := range 6 {
		a.say(fmt.Sprint("turn ", i))
		a.step()
	}
	a.items = nil
	a.say("This session is being continued. Summary: six turns.")
	a.step()
	a.say("go on")
	a.step()
	r := s.Report().Lanes
	if len(r) != 1 || r[0].Epoch != 1 || r[0].Calls != 8 {
		t.Errorf("%+v", r)
	}
}

// A process that ends at any step leaves a session that continues: the next request is what it would have been
// (acceptance 33, 38, 52).
func TestRestart(t *testing.T) {
	t.Parallel()
	run := func(restart bool) (bodies []string) {
		up := fake(t, func(q providertest.Query) providertest.Answer {
			bodies = append(bodies, string(q.Body))
			if q.N%3 != 0 {
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text(fmt.Sprint("round ", q.N))}, Calls: []abi.ToolCall{call(fmt.Sprint("c", q.N), "bash", "x"), call(fmt.Sprint("d", q.N), "bash", "no")}}
			}
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text(fmt.Sprint("done ", q.N))}}
		})
		db := memstore.New()
		cfg := proxy.Config{Store: db, Runtime: runtimeOf(t, gate(func(c *abi.ToolCall) *abi.Reply {
			if strings.HasPrefix(c.ID, "d") {
				return block("no")
			}
			return nil
		}), hook{name: "redact", hooks: []abi.Hook{{Phase: abi.AfterToolExecute, Mode: abi.ModeTransform}}, answer: func(e *abi.Event) (*abi.Reply, error) {
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceResult, Result: &abi.ToolResult{Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text("redacted " + e.Call.ID)}}}}}, nil
		}})}
		a := newAgent(t, wire.Messages, start(t, up.URL(), cfg).url, true, "X-Claude-Code-Session-Id", "s1")
		for turn := range 4 {
			a.say(fmt.Sprint("turn ", turn))
			for {
				ans := a.step()
				if restart {
					a.url = start(t, up.URL(), cfg).url
				}
				if len(ans.Calls()) == 0 {
					break
				}
				a.answer(ans, func(c wire.Out) string { return "secret of " + c.ID })
			}
		}
		return bodies
	}
	whole, killed := run(false), run(true)
	if len(whole) != len(killed) {
		t.Fatalf("%d and %d requests", len(whole), len(killed))
	}
	for i := range whole {
		if whole[i] != killed[i] {
			t.Errorf("request %d differs after restarts:\n%s\n%s", i+1, whole[i], killed[i])
		}
		if strings.Contains(killed[i], "secret of") {
			t.Errorf("request %d has what was redacted: %s", i+1, killed[i])
		}
	}
}

var _ phases.Plugin = hook{}
