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
		header := []string{"X-Claude-Code-Session-Id", "s1", "X-Claude-Code-Agent-Id", fmt.Sprint("a", i)}
		if i > 0 { // nested below the first one
			header = append(header, "X-Claude-Code-Parent-Agent-Id", "a0")
		}
		sub := newAgent(t, wire.Messages, s.url, false, header...)
		sub.say("turn 0")
		sub.step()
	}
	if lanes() != 7 {
		t.Errorf("with five sub-agents there are %d lanes", lanes())
	}
	ids := map[string]string{}
	for _, l := range s.Report().Lanes {
		ids[l.Agent] = l.ID
	}
	for _, l := range s.Report().Lanes {
		if want := ids["a0"]; strings.HasPrefix(l.Agent, "a") && l.Agent != "a0" && l.Parent != want {
			t.Errorf("the sub-agent %s is below %s, want %s", l.Agent, l.Parent, want)
		}
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

// Requests next to a conversation change no lane and fire no phase: titles, searches, fragments that are counted, the summary that a client
// has its own model write (acceptance 16).
func TestSides(t *testing.T) {
	t.Parallel()
	up := fake(t, nil)
	var seen []string
	s := start(t, up.URL(), proxy.Config{Runtime: runtimeOf(t, watch(&seen))})
	header := []string{"X-Claude-Code-Session-Id", "s1"}
	a := newAgent(t, wire.Messages, s.url, false, header...)
	for i := range 3 {
		a.say(fmt.Sprint("turn ", i))
		a.step()
	}
	before, fired := s.Report().Lanes[0], len(seen)
	message := func(text string) string { return `{"role":"user","content":` + quote(text) + `}` }
	body := func(messages, rest string) string {
		return `{"model":"claude-sonnet-4-5","max_tokens":100,"messages":[` + messages + `]` + rest + `}`
	}
	const search = `"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":8}],"tool_choice":{"type":"tool","name":"web_search"}`
	for name, side := range map[string][2]string{
		"title":    {"/v1/messages", body(message("a title for: turn 0"), `,"thinking":{"type":"disabled"},"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`)},
		"search":   {"/v1/messages", body(message("search for it"), ","+search)},
		"summary":  {"/v1/messages", body(strings.Join(a.items, ",")+","+message("Summarize the conversation."), "")},
		"fragment": {"/v1/messages/count_tokens", `{"model":"claude-sonnet-4-5","messages":[` + message("a fragment") + `]}`},
		"tools":    {"/v1/messages/count_tokens", `{"model":"claude-sonnet-4-5","messages":[` + message("x") + `],"tools":[{"name":"bash","input_schema":{"type":"object"}}]}`},
	} {
		_, _ = post(t, s.url+side[0], side[1], header...)
		after := s.Report().Lanes
		if len(after) != 1 || after[0].Calls != before.Calls || after[0].Items != before.Items || after[0].Epoch != 0 || len(seen) != fired {
			t.Errorf("%s changes the conversation: %+v, fired %v", name, after, seen[fired:])
		}
	}
	a.say("and on")
	a.step()
	if r := s.Report().Lanes; len(r) != 1 || r[0].Calls != before.Calls+1 {
		t.Errorf("%+v", r)
	}
}

// A client continues, clears and forks sessions: with the same id (--continue) the thread continues, and with a new id a history that was seen
// before is a fork with what its ancestor had; a cleared one begins anew. All of it also in another process (acceptance 17).
func TestContinued(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		var seen map[string]string
		up := fake(t, func(q providertest.Query) providertest.Answer {
			seen = results(q)
			if last := q.Messages[len(q.Messages)-1]; last.Role != abi.RoleTool {
				return providertest.Answer{Calls: []abi.ToolCall{call(fmt.Sprint("no", q.N), "bash", "x")}}
			}
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text(fmt.Sprint("answer ", q.N))}}
		})
		db := memstore.New()
		cfg := proxy.Config{Store: db, Runtime: runtimeOf(t, gate(func(*abi.ToolCall) *abi.Reply { return block("not that") }))}
		s := start(t, up.URL(), cfg)
		a := newAgent(t, p, s.url, stream, "X-Session-Id", "s1")
		for i := range 3 {
			a.say(fmt.Sprint("turn ", i))
			a.step()
		}
		id := s.Report().Lanes[0].ID
		for _, c := range []struct {
			session string
			fresh   bool // another process
			clear   bool
			blocked int
			forked  bool
		}{
			{"s1", true, false, 4, false}, {"s2", false, false, 4, true}, {"s3", true, false, 4, true}, {"s4", true, true, 1, false},
		} {
			if c.fresh {
				s = start(t, up.URL(), cfg)
			}
			b := *a
			b.url, b.header, b.items = s.url, []string{"X-Session-Id", c.session}, append([]string(nil), a.items...)
			if c.clear {
				b.items = nil
			}
			b.say("go on in " + c.session)
			b.step()
			var lane proxy.LaneReport
			for _, l := range s.Report().Lanes {
				if l.Session == c.session {
					lane = l
				}
			}
			if len(seen) != c.blocked || (lane.Parent != "") != c.forked || (lane.ID == id) != (c.session == "s1") {
				t.Errorf("%s: %d blocked calls, want %d; %+v", c.session, len(seen), c.blocked, lane)
			}
		}
	})
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

// Codex sends its tools to newer models in an item of the conversation: that is a conversation as any other, its calls are gated, a
// compaction keeps the item, no tool is added to it, and those that a plugin excludes are left out.
func TestToolsInItem(t *testing.T) {
	t.Parallel()
	l := &upstreamLog{t: t, proto: wire.Responses}
	up := fake(t, func(q providertest.Query) providertest.Answer {
		l.add(q.Body)
		if q.N%30 == 0 {
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done")}}
		}
		c := call(fmt.Sprintf("call_%d", q.N), "functions__bash", fmt.Sprintf("cat file%d.go", q.N))
		if q.N == 2 {
			c.Arguments = map[string]any{"command": "rm -rf /"}
		}
		return providertest.Answer{Calls: []abi.ToolCall{c}}
	})
	guard := hook{name: "guard", hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeGate}}, answer: func(e *abi.Event) (*abi.Reply, error) {
		if args, _ := e.Call.Arguments.(map[string]any); args["command"] == "rm -rf /" {
			return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "no"}}, nil
		}
		return nil, nil
	}}
	hide := hook{name: "hide", hooks: []abi.Hook{{Phase: abi.BeforeInference, Mode: abi.ModeTransform}}, answer: func(*abi.Event) (*abi.Reply, error) {
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectExcludeTools, Tools: []string{"read", "write", "late"}}}}, nil
	}}
	s := start(t, up.URL(), proxy.Config{Compaction: policy(), Store: memstore.New(), Runtime: runtimeOf(t, guard, hide)})
	a := newAgent(t, wire.Responses, s.url, true, "User-Agent", "codex_exec/0.169.0", "Session-Id", "s", "Thread-Id", "s")
	a.lite, a.tools = true, []string{"bash", "read", "write"}
	a.say("Read the files.")
	a.items = append(a.items, `{"type":"additional_tools","id":"at_2","role":"developer","tools":[{"type":"function","name":"late","parameters":{"type":"object","properties":{}}}]}`)
	n := 0
	rounds(t, s, a, &n)
	r := s.Report()
	if len(r.Lanes) != 1 || r.Counts["side"] != 0 || r.Counts["calls_removed"] != 1 || r.Counts["swaps"] == 0 {
		t.Errorf("%d lanes, %v", len(r.Lanes), r.Counts)
	}
	for i, body := range l.bodies {
		if text := string(body); strings.Count(text, `"type":"additional_tools"`) != 2 || strings.Contains(text, `"name":"recall"`) || strings.Count(text, `"parameters"`) != 1 {
			t.Errorf("request %d has not the client's tools: %.300s", i, text)
		}
	}
	if _, failed := cost(up.Bills()); failed > 0 {
		t.Errorf("%d requests are refused", failed)
	}
}
