package proxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/lane"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/thread"
)

// standInHead begins what replaces messages.
const standInHead = "mortise: summary of the earlier conversation"

// recordedIn makes a runtime whose decisions are recorded in a store.
func recordedIn(t *testing.T, db store.Store, plugins ...phases.Plugin) (*phases.Runtime, *thread.Recorder) {
	t.Helper()
	records, err := thread.NewRecorder(context.Background(), db, thread.RecordConfig{Source: "proxy"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = records.Close(context.Background()) })
	rt, err := phases.New(phases.Config{Plugins: plugins, Record: func(r phases.Record) {
		if err := records.Add(r.Run.RunID, thread.DecisionOf(&r)); err != nil {
			t.Error(err)
		}
	}})
	if err != nil {
		t.Fatal(err)
	}
	return rt, records
}

// A conversation through the proxy is a thread of the store like any other: its messages, compactions, events and decisions are there, the
// view of its newest marker is what the model gets, and a compaction that is taken back in the store is out of the next request.
func TestThread(t *testing.T) {
	t.Parallel()
	for _, p := range []wire.Protocol{wire.Messages, wire.Responses, wire.Chat} {
		t.Run(string(p), func(t *testing.T) {
			t.Parallel()
			if testing.Short() && p != wire.Messages {
				t.Skip("short")
			}
			ctx := context.Background()
			db := memstore.New()
			l := &upstreamLog{t: t, proto: p}
			var bodies [][]byte
			up := fake(t, func(q providertest.Query) providertest.Answer {
				bodies = append(bodies, q.Body)
				if text := q.Messages[len(q.Messages)-1].Text(); strings.HasPrefix(text, "Then") {
					return providertest.Answer{Content: []abi.ContentBlock{abi.Text("well")}}
				}
				return work(l, 10)(q)
			})
			rt, records := recordedIn(t, db, gate(func(c *abi.ToolCall) *abi.Reply {
				if c.ID == "call_3" {
					return block("not this one")
				}
				return nil
			}))
			s := start(t, up.URL(), proxy.Config{Runtime: rt, Compaction: policy(), Store: db, Records: records})
			a := newAgent(t, p, s.url, true, "X-Session-Id", "s1")
			session(t, s, a, 6)
			ln := s.Report().Lanes[0]
			if ln.Swaps < 2 {
				t.Fatalf("%d swaps", ln.Swaps)
			}
			threads := thread.On(db)
			all, err := threads.List(ctx)
			if err != nil || !slices.Equal(all, []string{ln.ID}) {
				t.Fatalf("listed are %v: %v", all, err)
			}
			log, err := threads.Messages(ctx, ln.ID)
			if err != nil || len(log) < len(a.items)-1 || !strings.Contains(log[0].Text()+log[1].Text(), "Task 0") {
				t.Fatalf("%d messages of %d items: %v", len(log), len(a.items), err)
			}
			state, _, err := threads.State(ctx, ln.ID)
			if err != nil || len(state.Markers) != 1 || state.Total != ln.Swaps {
				t.Fatalf("%+v: %v", state, err)
			}
			m := &state.Markers[0]
			view := compaction.View(log, m)
			if len(view) > len(log)-20 || !slices.ContainsFunc(view, func(v abi.Message) bool { return strings.Contains(v.Text(), m.Summary) }) || m.Quality.Overall == 0 || m.PreTokens <= m.PostTokens {
				t.Errorf("the view has %d of %d messages, marker %+v", len(view), len(log), m)
			}
			a.say("Then?")
			a.step()
			short := len(bodies[len(bodies)-1])
			if sent := bodies[len(bodies)-1]; !contains(sent, standInHead) {
				t.Errorf("the model does not get what the view has")
			}
			events, err := threads.Events(ctx, ln.ID)
			kinds := map[compaction.EventKind]int{}
			for i := range events {
				kinds[events[i].Kind]++
			}
			if err != nil || kinds[compaction.EventSwapped] != ln.Swaps || kinds[compaction.EventStarted] < ln.Swaps {
				t.Errorf("events %v of %d swaps: %v", kinds, ln.Swaps, err)
			}
			known, err := thread.RecordsOf(db).List(ctx, 10)
			if err != nil || len(known) != 7 {
				t.Fatalf("%d records: %v", len(known), err)
			}
			first, err := thread.RecordsOf(db).Load(ctx, known[6].ID)
			blocked := slices.ContainsFunc(first.Entries, func(d thread.Decision) bool {
				return d.CallID == "call_3" && d.Gate != nil && d.Gate.Reason == "not this one"
			})
			if err != nil || !blocked || len(first.Ends) != 1 || first.Ends[0].Type != string(abi.TerminationNatural) || first.Starts[0].Run.ThreadID != ln.ID {
				t.Errorf("the record of the first run: %+v: %v", first, err)
			}

			if _, ok := state.Undo(); !ok {
				t.Fatal("the marker cannot be undone")
			}
			_, rev, _ := threads.State(ctx, ln.ID)
			if _, err := threads.Swap(ln.ID, rev, state); err != nil {
				t.Fatal(err)
			}
			a.say("Then what was the first task?")
			a.step()
			settle(t, s)
			if sent := bodies[len(bodies)-1]; contains(sent, standInHead) || len(sent) < 2*short {
				t.Errorf("the compaction that was taken back is in the request still")
			}
			a.say("Then thanks")
			a.step()
			settle(t, s)
			if r := s.Report(); r.Lanes[0].Swaps != ln.Swaps {
				t.Errorf("it came again at once: %d swaps", r.Lanes[0].Swaps)
			}
		})
	}
}

// A client's own compaction is a marker of the thread, and the messages before it stay in the log.
func TestThread_clientCompacts(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	db := memstore.New()
	s := start(t, fake(t, nil).URL(), proxy.Config{Store: db})
	a := newAgent(t, wire.Messages, s.url, false, "X-Claude-Code-Session-Id", "s1")
	for i := range 6 {
		a.say(fmt.Sprint("turn ", i))
		a.step()
	}
	a.items = nil
	a.say("This session is being continued. Summary: six turns.")
	a.step()
	id := s.Report().Lanes[0].ID
	log, err := thread.On(db).Messages(ctx, id)
	if err != nil || len(log) != 12 || log[0].Text() != "turn 0" {
		t.Fatalf("%d messages: %v", len(log), err)
	}
	state, _, err := thread.On(db).State(ctx, id)
	if err != nil || len(state.Markers) != 1 || state.Markers[0].Policy != "client" {
		t.Fatalf("%+v: %v", state, err)
	}
	view := compaction.View(log, &state.Markers[0])
	if n := len(view); n > 3 || !strings.HasPrefix(view[n-1].Text(), "This session is being continued") {
		t.Errorf("the view has %d messages: %+v", n, view)
	}
}

// counter is a plugin that counts requests, in a value that outlives runs.
type counter struct{}

func (counter) Describe() abi.Description {
	return abi.Description{
		Name: "counter", Hooks: []abi.Hook{{Phase: abi.StepStart, Mode: abi.ModeTransform}},
		State: []abi.StateKey{{Name: "n", Scope: abi.ScopeThread, Merge: abi.MergeCommutative}},
	}
}

func (counter) OnPhase(context.Context, *abi.Event) (*abi.Reply, error) {
	return &abi.Reply{Updates: []abi.Update{{Key: "n", Op: abi.OpAdd, Value: int64(1)}}}, nil
}

// counted is what the counter of a lane has in the store.
func counted(t *testing.T, db store.Store, id string) any {
	t.Helper()
	snap, err := db.Read(context.Background(), id, store.Query{Cells: []store.Range{store.All("proxy.lane")}})
	if err != nil {
		t.Fatal(err)
	}
	raw, _ := snap.Cell("proxy.lane", "state")
	var st lane.State
	if err := json.Unmarshal(raw, &st); err != nil {
		t.Fatal(err)
	}
	return lane.Unpack(st.Plugins).Values["counter/n"]
}

// Two proxies on one store: sessions whose requests go to either continue from what the other one saved, and requests that overlap lose
// nothing of each other's: counters, blocked calls, the log (acceptance 23).
func TestTwoProxies(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		db := memstore.New()
		var mu sync.Mutex
		wants := map[string]int{} // blocked calls that a request of a session must have
		var barrier chan struct{}
		waiting := 0
		up := fake(t, func(q providertest.Query) providertest.Answer {
			mu.Lock()
			session := strings.Fields(q.Messages[len(q.Messages)-1].Text() + " -")[0]
			if b := barrier; b != nil && session == "both" {
				waiting++
				if waiting == 2 {
					close(b)
				}
				mu.Unlock()
				<-b // both have come before one ends
				mu.Lock()
			}
			defer mu.Unlock()
			got := 0
			for id, text := range results(q) {
				if strings.HasPrefix(id, "no") && strings.Contains(text, "not that") {
					got++
				}
			}
			last := q.Messages[len(q.Messages)-1]
			if last.Role == abi.RoleTool {
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text(fmt.Sprint("answer ", q.N))}}
			}
			if got != wants[session] {
				t.Errorf("a request of %s has %d blocked calls, want %d", session, got, wants[session])
			}
			wants[session]++
			if session == "both" {
				wants[session] = 0
			}
			return providertest.Answer{Calls: []abi.ToolCall{call(fmt.Sprint("no", q.N), "bash", "x")}}
		})
		config := func() proxy.Config {
			return proxy.Config{Store: db, Runtime: runtimeOf(t, counter{}, gate(func(*abi.ToolCall) *abi.Reply { return block("not that") }))}
		}
		urls := []string{start(t, up.URL(), config()).url, start(t, up.URL(), config()).url}
		var group sync.WaitGroup
		for i := range 4 {
			group.Go(func() {
				a := newAgent(t, p, "", stream, "X-Session-Id", fmt.Sprint("s", i))
				for j := range 6 {
					a.url = urls[(i+j)%2]
					a.say(fmt.Sprintf("s%d says %d", i, j))
					a.step()
				}
			})
		}
		group.Wait()
		all, err := thread.On(db).List(context.Background())
		if err != nil || len(all) != 4 {
			t.Fatalf("threads %v: %v", all, err)
		}
		for _, id := range all {
			if n := counted(t, db, id); n != int64(6) {
				t.Errorf("%s counted %v", id, n)
			}
		}

		a := newAgent(t, p, urls[0], stream, "X-Session-Id", "both")
		barrier = make(chan struct{})
		a.say("both at once")
		twin := *a
		twin.url = urls[1]
		group.Go(func() { a.step() })
		group.Go(func() { twin.step() })
		group.Wait()
		barrier, wants["both"] = nil, 1
		a.say("both are done")
		a.step()
		both, err := thread.On(db).List(context.Background())
		both = slices.DeleteFunc(both, func(id string) bool { return slices.Contains(all, id) })
		var n int64
		for _, id := range both {
			c, _ := counted(t, db, id).(int64)
			n += c
		}
		if err != nil || n != 3 {
			t.Errorf("%v counted %d: %v", both, n, err)
		}
	})
}

// A client that edits an old message still has the answers behind it: what was hidden from it there is in the requests that follow, also
// after a restart (acceptance 25).
func TestEdited(t *testing.T) {
	t.Parallel()
	each(t, func(t *testing.T, p wire.Protocol, stream bool) {
		t.Helper()
		for _, at := range []int{0, 2} {
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
			a := newAgent(t, p, start(t, up.URL(), cfg).url, stream, "X-Session-Id", "s")
			for i := range 4 {
				a.say(fmt.Sprint("turn ", i))
				a.step()
			}
			a.url = start(t, up.URL(), cfg).url
			a.items[at] = strings.Replace(a.items[at], "turn", "other", 1)
			a.say("go on")
			a.step()
			if len(seen) != 5 {
				t.Errorf("with item %d edited the model has %d of 5 blocked calls: %v", at, len(seen), seen)
			}
		}
	})
}
