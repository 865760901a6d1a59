package agentrun_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// pair is a model that calls "count" twice at once: the first call asks a person, see asksFirst. Then it states what became
// of them.
type pair struct{}

func (pair) Infer(_ context.Context, req llm.Request) (*abi.Response, error) {
	var results []string
	for i := range req.Messages {
		if m := &req.Messages[i]; m.Role == abi.RoleTool {
			results = append(results, m.Text())
		}
	}
	m := abi.Message{Role: abi.RoleAssistant}
	if len(results) > 0 {
		m.Content = []abi.ContentBlock{abi.Text(fmt.Sprintf("%q", results))}
	} else {
		m.ToolCalls = []abi.ToolCall{{ID: "first", Name: "count"}, {ID: "second", Name: "count"}}
	}
	return &abi.Response{Message: m}, nil
}

// asksFirst asks about the call "first".
type asksFirst struct{ asks }

func (asksFirst) OnPhase(ctx context.Context, e *abi.Event) (*abi.Reply, error) {
	if e.Call.ID != "first" {
		return nil, nil
	}
	return asks{}.OnPhase(ctx, e)
}

func yes(t *testing.T, target string) []mailbox.Decision {
	t.Helper()
	list, err := agentrun.Decisions(agent.Decision{Target: target, Action: agent.ActionResume, Result: "yes"})
	must(t, err)
	return list
}

// held holds the second call up until it is let go, and signals when it has begun.
func held() (s *tools, begun, release chan struct{}) {
	begun, release = make(chan struct{}, 10), make(chan struct{})
	return &tools{during: func(ctx context.Context, call abi.ToolCall) {
		if call.ID == "second" {
			begun <- struct{}{}
			select {
			case <-release:
			case <-ctx.Done():
			}
		}
	}}, begun, release
}

const bothCounted = `["ok" "ok"]`

// TestDecisionSurvives: a decision that a run has taken while another call of its step was under way is not lost, wherever its
// process loses its store after that, and no person is asked again.
func TestDecisionSurvives(t *testing.T) {
	t.Parallel()
	for _, fault := range []mailboxtest.Fault{mailboxtest.FaultBefore, mailboxtest.FaultAfter} {
		t.Run(string(fault), func(t *testing.T) {
			t.Parallel()
			deaths, taken := 0, 0
			for after := int32(1); after <= 16; after++ {
				synctest.Test(t, func(t *testing.T) {
					died, took := decisionSurvives(t, after, fault)
					if died {
						deaths++
					}
					if took {
						taken++
					}
				})
			}
			if deaths < 8 || taken < 5 {
				t.Errorf("%d processes lost their store, %d runs had taken the decision by then", deaths, taken)
			}
		})
	}
}

// decisionSurvives lets the process lose its store at an update, counted from the submission, and reports whether it did, and whether that was after
// it had taken the decision.
func decisionSurvives(t *testing.T, after int32, fault mailboxtest.Fault) (lost, took bool) {
	t.Helper()
	mem := memstore.New()
	frail, died := dying(mem, after, fault, 0)
	s, begun, release := held()
	one := newProcess(t, frail, "one", pair{}, s, asksFirst{})
	r := request(t, "t", user("go"))
	r.Key = "the only one"
	sub, err := one.box.SubmitBackground(t.Context(), r)
	if err != nil && !died.Load() {
		t.Fatal(err)
	}
	synctest.Wait()
	if len(begun) > 0 && err == nil {
		kept, err := one.box.Decide(t.Context(), sub.Run, yes(t, "ask_first")...)
		took = kept && err == nil
	}
	close(release)
	synctest.Wait()
	two := newProcess(t, mem, "two", pair{}, &tools{}, asksFirst{})
	sub = two.submit(t, r)
	two.await(t, sub)
	time.Sleep(2 * time.Minute)
	synctest.Wait()
	run := two.runOf(t, sub.Run)
	if !took {
		return died.Load(), false
	}
	// What was under way when the process ended was interrupted, and may have been executed.
	if run.Status != mailbox.RunDone || run.Response == "" || !slices.Contains(log(t, mem, "t"), "tool: ok") {
		t.Errorf("store lost at update %d, %s: the run is %s, waits for %q, came to %q (%q)\n%q", after, fault, run.Status, run.Wait, run.Response, run.Error, log(t, mem, "t"))
	}
	return died.Load(), died.Load()
}

// TestDecisionIsTakenOnce: the same decision queued and live are one, and another decision about the call is ErrDecided.
func TestDecisionIsTakenOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		s, begun, release := held()
		one := newProcess(t, mem, "one", pair{}, s, asksFirst{})
		two := newProcess(t, unwatched{mem}, "two", pair{}, s, asksFirst{})
		sub := one.submit(t, request(t, "t", user("go")))
		<-begun
		two.submit(t, mailbox.Request{Thread: "t", Run: sub.Run, Decisions: yes(t, "first")})
		ok, err := two.box.Decide(t.Context(), sub.Run, yes(t, "first")...)
		must(t, err)
		if !ok {
			t.Error("the run does not have the decision")
		}
		for _, target := range []string{"first", "ask_first"} {
			for _, p := range []*process{two, one} {
				if ok, err := p.box.Decide(t.Context(), sub.Run, yes(t, target)...); ok || !errors.Is(err, mailbox.ErrDecided) {
					t.Errorf("another decision: %v, %v", ok, err)
				}
				_, err := p.box.SubmitBackground(t.Context(), mailbox.Request{Thread: "t", Decisions: yes(t, target)})
				if !errors.Is(err, mailbox.ErrDecided) {
					t.Errorf("another request: %v", err)
				}
			}
		}
		close(release)
		one.await(t, sub)
		time.Sleep(time.Minute)
		synctest.Wait()
		if r := one.runOf(t, sub.Run); r.Status != mailbox.RunDone || r.Termination != "natural" || r.Response != bothCounted {
			t.Errorf("run is %+v", r)
		}
		slices.Sort(s.keys)
		if len(s.keys) != 2 || s.keys[0] == s.keys[1] {
			t.Errorf("calls with the keys %q", s.keys)
		}
		list, err := queueOf(t, mem).Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Limit: 10})
		must(t, err)
		if len(list) != 2 {
			t.Errorf("%d dispatches", len(list))
		}
		for _, d := range list {
			if d.Status != mailbox.Acked || d.RunID != sub.Run {
				t.Errorf("dispatch is %+v", d)
			}
		}
	})
}

// TestMessagesForARunThatEnds: of several that were queued for a run that waits, the first lets it continue to its end, and the rest
// get runs of their own.
func TestMessagesForARunThatEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		p := newProcess(t, mem, "one", &counter{rounds: 1}, &tools{}, asks{})
		sub := p.submit(t, request(t, "t", user("go")))
		p.await(t, sub)
		at := time.Now().Add(time.Second)
		decided := p.submit(t, mailbox.Request{Thread: "t", Run: sub.Run, Decisions: yes(t, "ask_call_1_0"), At: at})
		more := request(t, "t", user("more"))
		more.At = at
		next := p.submit(t, more)
		p.await(t, decided)
		if d := p.await(t, next); d.Status != mailbox.Acked || d.RunID == sub.Run || d.RunStatus != mailbox.RunWaiting {
			t.Errorf("dispatch is %+v", d)
		}
		if r := p.runOf(t, sub.Run); r.Termination != "natural" || r.Response != "counted to 1" {
			t.Errorf("run is %+v", r)
		}
	})
}

// unwatched is a store without notifications.
type unwatched struct{ store.Store }

func (unwatched) Watch(ctx context.Context, _ string) (<-chan struct{}, error) {
	none := make(chan struct{})
	context.AfterFunc(ctx, func() { close(none) })
	return none, nil
}
