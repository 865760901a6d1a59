package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/phases"
)

// asking is a gate that suspends calls of shell, each with a ticket of its own. It knows
// nothing of resuming.
func asking(mode abi.ResumeMode) *hook {
	return &hook{name: "gate", phase: abi.ToolGate, mode: abi.ModeGate, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		if e.Call.Name != "shell" {
			return nil, nil
		}
		return &abi.Reply{Gate: &abi.GateDecision{
			Action: abi.GateSuspend, Reason: "needs a yes", Ticket: &abi.SuspendTicket{ID: "ask_" + e.Call.ID, Action: "confirm", Mode: mode},
		}}, nil
	}}
}

func mustRun(t *testing.T, b *bench, req agent.Request) agent.Result {
	t.Helper()
	result, err := b.agent.Run(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	checkLog(t, b)
	checkEvents(t, b.events)
	return result
}

func decide(target string, action agent.DecisionAction, result any) agent.Request {
	return agent.Request{ThreadID: "t", Decisions: []agent.Decision{{ID: "d_" + target, Target: target, Action: action, Result: result, Reason: "because"}}}
}

func toolTexts(b *bench) []string {
	log := b.agent.Thread("t").Messages()
	return texts(slices.DeleteFunc(log, func(m abi.Message) bool { return m.Role != abi.RoleTool }))
}

func TestSuspendAndResume(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		mode   abi.ResumeMode
		target string
		action agent.DecisionAction
		result any
		tool   string // what the model reads in the end
		ran    bool
		told   bool // the tool sees the decision
	}{
		"replay, by call":        {abi.ResumeReplay, "c1", agent.ActionResume, true, "tool: rm", true, false},
		"replay, by ticket":      {"", "ask_c1", agent.ActionResume, nil, "tool: rm", true, false},
		"the decision as result": {abi.ResumeUseDecision, "c1", agent.ActionResume, map[string]any{"a": int64(1)}, `tool: {"a":1}`, false, false},
		"passed to the tool":     {abi.ResumePassDecision, "c1", agent.ActionResume, "five", "tool: rm", true, true},
		"cancelled":              {abi.ResumeReplay, "c1", agent.ActionCancel, map[string]any{"no": "never"}, `tool: {"no":"never"}`, false, false},
		"cancelled, no result":   {abi.ResumeReplay, "ask_c1", agent.ActionCancel, nil, "tool: null", false, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "rm")), says("done")}}, agent.Config{}, asking(c.mode))
			var got abi.ToolCall
			b.tools.do = func(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
				got = call
				return abi.ToolResult{Message: fmt.Sprint(call.Arguments)}, nil
			}
			first := mustRun(t, b, request(user("go")))
			if first.Status != agent.StatusWaiting || first.StatusReason != "suspended" || first.Termination.Type != agent.Suspended ||
				len(first.Tickets) != 1 || first.Tickets[0].ID != "ask_c1" || first.Tickets[0].Reason != "needs a yes" {
				t.Fatalf("result %+v", first)
			}
			if tools := toolTexts(b); len(b.tools.calls) != 0 || tools[0] != "tool: Tool 'shell' suspended: awaiting decision" {
				t.Errorf("ran %v, tool messages %q", b.tools.calls, tools)
			}
			last := mustRun(t, b, decide(c.target, c.action, c.result))
			if last.RunID != first.RunID || last.Status != agent.StatusDone || last.StatusReason != "natural" || last.Steps != 2 {
				t.Errorf("the run continued as %+v", last)
			}
			if tools := toolTexts(b); len(tools) != 1 || tools[0] != c.tool || len(b.tools.calls) > 0 != c.ran {
				t.Errorf("tool messages %q, ran %v", tools, b.tools.calls)
			}
			if told := got.Resume != nil; told != c.told || told && (got.Resume.Result != c.result || got.Resume.DecisionID != "d_c1") {
				t.Errorf("the tool got %+v", got)
			}
			if b.count(agent.EventToolCallResumed) != 1 || b.count(agent.EventRunFinish) != 2 {
				t.Errorf("%d resumed, %d finishes", b.count(agent.EventToolCallResumed), b.count(agent.EventRunFinish))
			}
		})
	}
}

func TestResumeIsShownToTheGate(t *testing.T) {
	t.Parallel()
	var seen []*abi.Resume
	gate := &hook{name: "gate", phase: abi.ToolGate, mode: abi.ModeGate, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		seen = append(seen, e.Call.Resume)
		if e.Call.Resume != nil {
			return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "a yes is not enough"}}, nil
		}
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateSuspend, Ticket: &abi.SuspendTicket{ID: "t1"}}}, nil
	}}
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "rm"))}}, agent.Config{}, gate)
	mustRun(t, b, request(user("go")))
	result := mustRun(t, b, decide("t1", agent.ActionResume, "yes"))
	if result.Termination.Type != agent.Blocked || len(b.tools.calls) != 0 || len(seen) != 2 || seen[1] == nil || seen[1].Result != "yes" || seen[1].TicketID != "t1" {
		t.Errorf("result %+v, the gate saw %+v", result, seen)
	}
}

// TestAskedAgain: another question suspends the call once more, and the second
// execution has a key of its own.
func TestAskedAgain(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "pay")), says("done")}}, agent.Config{})
	var keys []string
	b.tools.do = func(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
		keys = append(keys, call.IdempotencyKey)
		if len(keys) < 3 {
			return abi.ToolResult{Status: abi.ToolPending, Message: "sure?", Ticket: &abi.SuspendTicket{ID: fmt.Sprint("q", len(keys))}}, nil
		}
		return abi.ToolResult{Message: fmt.Sprint(call.Resume.Result)}, nil
	}
	mustRun(t, b, request(user("go")))
	second := mustRun(t, b, decide("q1", agent.ActionResume, "yes"))
	if second.Status != agent.StatusWaiting || second.Tickets[0].ID != "q2" || b.count(agent.EventRunFinish) != 2 {
		t.Fatalf("result %+v", second)
	}
	if _, err := b.agent.Run(t.Context(), decide("q1", agent.ActionResume, "yes")); !errors.Is(err, agent.ErrNoTicket) {
		t.Errorf("an old decision: %v", err)
	}
	last := mustRun(t, b, decide("q2", agent.ActionResume, "really"))
	if last.Status != agent.StatusDone || toolTexts(b)[0] != "tool: really" {
		t.Errorf("result %+v, tools %q", last, toolTexts(b))
	}
	slices.Sort(keys)
	if len(slices.Compact(keys)) != 3 || slices.Contains(keys, "") {
		t.Errorf("keys %q", keys)
	}
}

func TestUnknownDecisionChangesNothing(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "rm")), says("done")}}, agent.Config{}, asking(""))
	mustRun(t, b, request(user("go")))
	before, events := texts(b.agent.Thread("t").Messages()), len(b.events)
	for name, d := range map[string]agent.Decision{
		"invalid resume: tool call or suspension c9 not found": {Target: "c9", Action: agent.ActionResume},
		`action "maybe" is not one of resume, cancel`:          {Target: "c1", Action: "maybe"},
	} {
		both := []agent.Decision{{Target: "c1", Action: agent.ActionResume}, d}
		if d.Target == "c1" {
			both = both[1:]
		}
		_, err := b.agent.Run(t.Context(), agent.Request{ThreadID: "t", Decisions: both})
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("error %v, want %q", err, name)
		}
	}
	if !slices.Equal(before, texts(b.agent.Thread("t").Messages())) || len(b.events) != events {
		t.Error("a refused decision left a trace")
	}
	if r := mustRun(t, b, decide("c1", agent.ActionResume, nil)); r.Status != agent.StatusDone {
		t.Errorf("the run is lost: %+v", r)
	}
}

// TestSuspendedCallsOfOneStep: a gate that suspends lets the other calls continue; what
// was decided is executed in the order of the calls, cancelled ones first.
func TestSuspendedCallsOfOneStep(t *testing.T) {
	t.Parallel()
	for mode, finishes := range map[agent.ToolMode]int{agent.Sequential: 3, agent.ParallelStreaming: 3, agent.ParallelBatch: 3} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			answer := says("", calls("c3", "shell", "3"), calls("c2", "echo", "2"), calls("c1", "shell", "1"))
			b := newBench(t, &script{answers: []abi.Message{answer, says("done")}}, agent.Config{Execution: agent.Execution{ToolMode: mode}}, asking(""))
			first := mustRun(t, b, request(user("go")))
			if !slices.Equal(b.tools.calls, []string{"c2"}) || len(first.Tickets) != 2 || first.Tickets[0].Call.ID != "c1" {
				t.Fatalf("ran %v, tickets %+v", b.tools.calls, first.Tickets)
			}
			second := mustRun(t, b, decide("c3", agent.ActionResume, nil))
			if second.Status != agent.StatusWaiting || len(second.Tickets) != 1 {
				t.Fatalf("result %+v", second)
			}
			if early := slices.Contains(b.tools.calls, "c3"); early == (mode == agent.ParallelBatch) {
				t.Errorf("ran %v before everything was decided", b.tools.calls)
			}
			last := mustRun(t, b, decide("c1", agent.ActionResume, nil))
			if last.Status != agent.StatusDone || b.count(agent.EventRunFinish) != finishes {
				t.Errorf("result %+v after %d finishes", last, b.count(agent.EventRunFinish))
			}
			want := []string{"c2", "c3", "c1"}
			if mode == agent.ParallelBatch {
				want = []string{"c2", "c1", "c3"} // by call id
			}
			if !slices.Equal(b.tools.calls, want) {
				t.Errorf("ran %v, want %v", b.tools.calls, want)
			}
		})
	}
}

func TestToolBatches(t *testing.T) {
	t.Parallel()
	pend := func(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
		if call.ID == "c2" {
			return abi.ToolResult{Status: abi.ToolPending}, nil
		}
		return abi.ToolResult{Message: call.ID}, nil
	}
	answer := says("", calls("c1", "echo", ""), calls("c2", "echo", ""), calls("c3", "echo", ""))
	for mode, want := range map[agent.ToolMode][]string{
		agent.Sequential:        {"tool: c1", "tool: Tool 'echo' suspended: awaiting decision", "tool: [Tool execution was interrupted]"},
		agent.ParallelBatch:     {"tool: c1", "tool: Tool 'echo' suspended: awaiting decision", "tool: c3"},
		agent.ParallelStreaming: {"tool: c1", "tool: Tool 'echo' suspended: awaiting decision", "tool: c3"},
	} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &script{answers: []abi.Message{answer}}, agent.Config{Execution: agent.Execution{ToolMode: mode}})
			b.tools.do = pend
			r := mustRun(t, b, request(user("go")))
			if got := toolTexts(b); !slices.Equal(got, want) || r.Status != agent.StatusWaiting {
				t.Errorf("tool messages %q, result %+v", got, r)
			}
		})
	}
}

// TestGateIsAskedAgain: it blocks a call because of what an earlier call of the step
// did.
func TestGateIsAskedAgain(t *testing.T) {
	t.Parallel()
	for _, mode := range []agent.ToolMode{agent.Sequential, agent.ParallelBatch} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			done := func(e *abi.Event) bool {
				return slices.ContainsFunc(e.Messages, func(m abi.Message) bool { return m.Role == abi.RoleTool })
			}
			asked := 0
			gate := &hook{name: "gate", phase: abi.ToolGate, mode: abi.ModeGate, view: abi.ViewAll, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
				if e.Call.ID != "c2" {
					return nil, nil
				}
				asked++
				if done(e) { // Now that c1 was executed, c2 may be.
					return nil, nil
				}
				return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "first c1"}}, nil
			}}
			b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", ""), calls("c2", "echo", "")), says("done")}}, agent.Config{Execution: agent.Execution{ToolMode: mode}}, gate)
			r := mustRun(t, b, request(user("go")))
			want := map[agent.ToolMode]int{agent.Sequential: 1, agent.ParallelBatch: 2}[mode]
			if r.Termination.Type != agent.NaturalEnd || asked != want || !slices.Equal(b.tools.calls, []string{"c1", "c2"}) {
				t.Errorf("result %+v, the gate was asked %d times, ran %v", r, asked, b.tools.calls)
			}
		})
	}
}

// TestParallelToolsMeet: the tools of a step run at the same time, and not more than
// are allowed.
func TestParallelToolsMeet(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var many []abi.ToolCall
		for i := range 6 {
			many = append(many, calls(fmt.Sprint("c", i), "echo", ""))
		}
		b := newBench(t, &script{answers: []abi.Message{says("", many...), says("done")}}, agent.Config{Execution: agent.Execution{ToolMode: agent.ParallelBatch, MaxParallel: 3}})
		meet, running := make(chan struct{}), make(chan int, 1)
		running <- 0
		most := 0
		b.tools.do = func(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
			n := <-running + 1
			most = max(most, n)
			running <- n
			<-meet
			running <- <-running - 1
			return abi.ToolResult{Message: call.ID}, nil
		}
		go func() {
			for range 6 {
				synctest.Wait()
				meet <- struct{}{}
			}
		}()
		r := mustRun(t, b, request(user("go")))
		if got := toolTexts(b); most != 3 || r.Termination.Type != agent.NaturalEnd || !slices.IsSorted(got) {
			t.Errorf("%d at a time, results %q, %+v", most, got, r)
		}
	})
}

func TestSupersede(t *testing.T) {
	t.Parallel()
	internal := user("news")
	internal.Visibility = abi.VisibilityInternal
	for name, c := range map[string]struct {
		message    abi.Message
		superseded bool
	}{"a user's message": {user("forget it"), true}, "an internal message": {internal, false}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "rm")), says("done")}}, agent.Config{}, asking(""))
			first := mustRun(t, b, request(user("go")))
			second := mustRun(t, b, request(c.message))
			tool := toolTexts(b)[0]
			if c.superseded != (second.Status == agent.StatusDone) || c.superseded != strings.Contains(tool, "the user wrote something new") {
				t.Errorf("result %+v, the model reads %q", second, tool)
			}
			if c.superseded != (b.count(agent.EventToolCallCancel) == 1) || c.superseded != (len(second.Tickets) == 0) || second.RunID != first.RunID {
				t.Errorf("%d cancelled, tickets %+v", b.count(agent.EventToolCallCancel), second.Tickets)
			}
			if len(b.tools.calls) != 0 {
				t.Errorf("ran %v", b.tools.calls)
			}
		})
	}
}

func TestFrontendTools(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "pick", "a colour")), says("done")}}, agent.Config{})
	req := request(user("go"))
	req.FrontendTools = []abi.Tool{{Name: "pick"}, {Name: "echo", Description: "not this one: the agent has it"}}
	first := mustRun(t, b, req)
	if tk := first.Tickets; len(tk) != 1 || tk[0].ID != "suspend_c1" || tk[0].Action != "tool:pick" || tk[0].Mode != abi.ResumeUseDecision {
		t.Fatalf("tickets %+v", tk)
	}
	if n := len(b.model.requests[0].Tools); n != 3 {
		t.Errorf("the model was offered %d tools", n)
	}
	mustRun(t, b, decide("suspend_c1", agent.ActionResume, "red"))
	if toolTexts(b)[0] != "tool: red" || len(b.tools.calls) != 0 {
		t.Errorf("tools %q, ran %v", toolTexts(b), b.tools.calls)
	}
}

// TestResumedResultIsTransformed: what hides secrets sees the results of resumed
// calls as well.
func TestResumedResultIsTransformed(t *testing.T) {
	t.Parallel()
	for _, breaks := range []bool{false, true} {
		t.Run(fmt.Sprint("breaks ", breaks), func(t *testing.T) {
			t.Parallel()
			redact := &hook{name: "redact", phase: abi.AfterToolExecute, mode: abi.ModeTransform, fail: abi.FailRun, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
				if breaks {
					return nil, errors.New("broken")
				}
				return effect(abi.Effect{Type: abi.EffectReplaceMessage, MessageID: e.ResultMessageID, Content: []abi.ContentBlock{abi.Text("[hidden]")}}), nil
			}}
			b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "secret")), says("done")}}, agent.Config{}, asking(""), redact)
			mustRun(t, b, request(user("go")))
			_, err := b.agent.Run(t.Context(), decide("c1", agent.ActionResume, nil))
			if (err != nil) != breaks {
				t.Fatal(err)
			}
			checkLog(t, b)
			if all := fmt.Sprint(b.agent.Thread("t").Messages()[2:], b.events[len(b.events)-12:]); strings.Contains(toolTexts(b)[0], "secret") || breaks && strings.Contains(all, "tool: secret") {
				t.Errorf("the log holds %q", toolTexts(b))
			}
			for _, e := range b.events {
				if e.Type == agent.EventToolCallResumed && strings.Contains(fmt.Sprint(*e.Result), "secret") {
					t.Errorf("the listener receives %+v", e.Result)
				}
			}
		})
	}
}

var _ phases.Plugin = (*hook)(nil)

// forgetful is a compactor that hides everything but the last two messages once it
// was asked to.
type forgetful struct{ hides bool }

func (f *forgetful) View(_ string, log []abi.Message) []abi.Message {
	if f.hides {
		return log[max(0, len(log)-1):]
	}
	return log
}
func (f *forgetful) Consider(context.Context, string, []abi.Message) bool         { return false }
func (f *forgetful) Consume(_ string, _ []abi.Message, n abi.Notice) (taken bool) { return false }
func (f *forgetful) Request(string, string)                                       {}
func (f *forgetful) Calibrate(string, int64, []abi.Message)                       {}

// TestResultAfterACompaction: when the place of a suspended call is not in the view
// any more, the model reads its result at the end.
func TestResultAfterACompaction(t *testing.T) {
	t.Parallel()
	f := &forgetful{}
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "the list")), says("done")}}, agent.Config{Compactor: f}, asking(""))
	mustRun(t, b, request(user("go")))
	f.hides = true
	internal := user("news")
	internal.Visibility = abi.VisibilityInternal
	mustRun(t, b, request(internal))
	mustRun(t, b, decide("c1", agent.ActionResume, nil))
	last := b.model.requests[len(b.model.requests)-1].Messages
	if got := texts(last); len(got) != 1 || got[0] != "user: the list" || last[0].Visibility != abi.VisibilityInternal {
		t.Errorf("the model reads %q", got)
	}
	if tools := toolTexts(b); tools[0] != "tool: [The result stands further down]" {
		t.Errorf("tools %q", tools)
	}
}

// TestRunThatIsOverHasNoTickets: a block ends the run, and with it the calls of the
// step that waited.
func TestRunThatIsOverHasNoTickets(t *testing.T) {
	t.Parallel()
	block := &hook{name: "block", phase: abi.ToolGate, mode: abi.ModeGate, do: func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		if e.Call.ID != "c2" {
			return nil, nil
		}
		return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "no"}}, nil
	}}
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "a"), calls("c2", "echo", "b")), says("next")}}, agent.Config{}, asking(""), block)
	r := mustRun(t, b, request(user("go")))
	if r.Termination.Type != agent.Blocked || r.Status != agent.StatusDone || len(r.Tickets) != 0 || !strings.Contains(toolTexts(b)[0], "it waited for a decision, and the run ended: blocked:no") {
		t.Errorf("result %+v, tools %q", r, toolTexts(b))
	}
	if _, err := b.agent.Run(t.Context(), decide("c1", agent.ActionResume, nil)); !errors.Is(err, agent.ErrNoTicket) {
		t.Errorf("a decision for a run that is over: %v", err)
	}
}

// TestReplayIsCancelled: a resumed call is raced like any other.
func TestReplayIsCancelled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "a"))}}, agent.Config{}, asking(""))
		mustRun(t, b, request(user("go")))
		b.tools.do = func(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
			<-ctx.Done()
			return abi.ToolResult{}, ctx.Err()
		}
		out := start(t, b, decide("c1", agent.ActionResume, nil))
		synctest.Wait()
		control(t, b, "t").Cancel()
		if end := <-out; end.result.Termination.Type != agent.Cancelled || len(end.result.Tickets) != 0 {
			t.Errorf("result %+v", end.result)
		}
		checkLog(t, b)
		checkEvents(t, b.events)
	})
}
