package agent_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
)

// background runs something alongside a test and hands out what it came to.
type outcome struct {
	result agent.Result
	err    error
}

func start(t *testing.T, b *bench, req agent.Request) <-chan outcome {
	t.Helper()
	out := make(chan outcome, 1)
	ctx := t.Context()
	go func() {
		r, err := b.agent.Run(ctx, req)
		out <- outcome{r, err}
	}()
	return out
}

func control(t *testing.T, b *bench, id string) *agent.Control {
	t.Helper()
	c, err := b.agent.Control(id)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestWaitInProcess: a run that waits for decisions refuses wrong ones and continues,
// takes messages meanwhile, and continues with right ones.
func TestWaitInProcess(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		answer := says("", calls("c2", "shell", "b"), calls("c1", "shell", "a"))
		b := newBench(t, &script{answers: []abi.Message{answer, says("done")}}, agent.Config{}, asking(""))
		req := request(user("go"))
		req.Wait = true
		out := start(t, b, req)
		synctest.Wait()
		c := control(t, b, "t")
		if err := c.Decide(agent.Decision{Target: "c9", Action: agent.ActionResume}); !errors.Is(err, agent.ErrNoTicket) {
			t.Errorf("a wrong decision: %v", err)
		}
		if err := c.Send(t.Context(), user("psst")); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if log := texts(b.agent.Thread("t").Messages()); log[len(log)-1] != "user: psst" || b.count(agent.EventRunFinish) != 1 {
			t.Errorf("log %q", log)
		}
		if err := c.Decide(agent.Decision{Target: "c2", Action: agent.ActionResume}); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if n := b.count(agent.EventRunFinish); n != 2 {
			t.Errorf("%d finishes when one call still waits", n)
		}
		if err := c.Decide(agent.Decision{Target: "ask_c1", Action: agent.ActionCancel}); err != nil {
			t.Error(err)
		}
		end := <-out
		if end.err != nil || end.result.Status != agent.StatusDone || !slices.Equal(b.tools.calls, []string{"c2"}) {
			t.Errorf("result %+v, error %v, ran %v", end.result, end.err, b.tools.calls)
		}
		checkEvents(t, b.events)
		checkLog(t, b)
		if err := c.Decide(agent.Decision{Target: "c1"}); !errors.Is(err, agent.ErrNoRun) {
			t.Errorf("after the end: %v", err)
		}
	})
}

func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "a")), says("done")}}, agent.Config{Limits: agent.Limits{WaitLimit: time.Minute}}, asking(""))
		req := request(user("go"))
		req.Wait = true
		begin := time.Now()
		r := mustRun(t, b, req)
		if r.Status != agent.StatusWaiting || time.Since(begin) != time.Minute {
			t.Errorf("result %+v after %v", r, time.Since(begin))
		}
		if r := mustRun(t, b, decide("c1", agent.ActionResume, nil)); r.Status != agent.StatusDone {
			t.Errorf("it cannot continue: %+v", r)
		}
	})
}

func TestCancelWhileWaiting(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "a"))}}, agent.Config{}, asking(""))
		req := request(user("go"))
		req.Wait, req.RunID = true, "r1"
		out := start(t, b, req)
		synctest.Wait()
		c := control(t, b, "r1")
		c.Cancel()
		if err := c.Wait(t.Context()); err != nil {
			t.Error(err)
		}
		end := <-out
		if !errors.Is(end.err, context.Canceled) || end.result.Status != agent.StatusDone || end.result.StatusReason != "cancelled" || len(end.result.Tickets) != 0 {
			t.Errorf("result %+v, error %v", end.result, end.err)
		}
		checkEvents(t, b.events)
		checkLog(t, b)
	})
}

func TestControl(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		hold := make(chan struct{})
		b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("", calls("c1", "echo", "a")), says("x"), says("x")}}, agent.Config{})
		b.tools.do = func(context.Context, abi.ToolCall) (abi.ToolResult, error) {
			<-hold
			return abi.ToolResult{}, nil
		}
		if _, err := b.agent.Control("t1"); !errors.Is(err, agent.ErrNoRun) {
			t.Errorf("no run: %v", err)
		}
		// The run of t1 is called t2, and t2 has a run as well.
		one := start(t, b, agent.Request{ThreadID: "t1", RunID: "t2", Messages: []abi.Message{user("go")}})
		synctest.Wait()
		if c := control(t, b, "t2"); c.ThreadID() != "t1" {
			t.Errorf("t2 is the run of %q", c.ThreadID())
		}
		two := start(t, b, agent.Request{ThreadID: "t2", RunID: "other", Messages: []abi.Message{user("go")}})
		synctest.Wait()
		if _, err := b.agent.Control("t2"); !errors.Is(err, agent.ErrAmbiguous) {
			t.Errorf("t2 is a run and another one's thread: %v", err)
		}
		if control(t, b, "other").ThreadID() != "t2" || control(t, b, "t1").ThreadID() != "t1" {
			t.Error("the wrong run was found")
		}
		_, err := b.agent.Run(t.Context(), agent.Request{ThreadID: "t3", RunID: "other"})
		if err == nil || !strings.Contains(err.Error(), "run_id_hint 'other' already exists as a run") {
			t.Errorf("two runs of one id: %v", err)
		}
		if _, err := b.agent.Run(t.Context(), agent.Request{ThreadID: "t1"}); !errors.Is(err, agent.ErrThreadBusy) {
			t.Errorf("a second run: %v", err)
		}
		close(hold)
		<-one
		<-two
	})
}

// TestCancelDuringPreparation: the run is found, and ends, however early it is
// cancelled.
func TestCancelDuringPreparation(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := &slow{Memory: agent.NewMemory(), entered: make(chan struct{}), leave: make(chan struct{})}
		b := newBench(t, &script{answers: []abi.Message{says("done")}}, agent.Config{Checkpoints: store})
		out := start(t, b, request(user("go")))
		<-store.entered
		control(t, b, "t").Cancel()
		close(store.leave)
		if end := <-out; !errors.Is(end.err, context.Canceled) || end.result.Termination.Type != agent.Cancelled || len(b.model.requests) != 0 {
			t.Errorf("result %+v, error %v", end.result, end.err)
		}
	})
}

type slow struct {
	*agent.Memory
	entered, leave chan struct{}
}

func (s *slow) LoadThread(ctx context.Context, thread string) (agent.Checkpoint, bool, error) {
	close(s.entered)
	<-s.leave
	return s.Memory.LoadThread(ctx, thread)
}

func TestRunIDs(t *testing.T) {
	t.Parallel()
	store := agent.NewMemory()
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "a")), says("done"), says("again")}}, agent.Config{Checkpoints: store}, asking(""))
	run := func(req agent.Request) (agent.Result, error) {
		req.ThreadID = "t"
		return b.agent.Run(t.Context(), req)
	}
	wrong := func(req agent.Request, want string) {
		t.Helper()
		if _, err := run(req); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
	wrong(agent.Request{ContinueRunID: "r0"}, "invalid resume: continue_run_id 'r0' does not reference an existing run")
	first, err := run(agent.Request{RunID: "  r1 ", Messages: []abi.Message{user("go")}})
	if err != nil || first.RunID != "r1" || first.Status != agent.StatusWaiting {
		t.Fatalf("%+v, %v", first, err)
	}
	wrong(agent.Request{RunID: "r1"}, "run_id_hint 'r1' already exists as a run")
	wrong(agent.Request{ContinueRunID: "r0"}, "does not reference an existing run")
	last, err := run(agent.Request{ContinueRunID: "r1", Decisions: []agent.Decision{{Target: "c1", Action: agent.ActionResume}}})
	if err != nil || last.RunID != "r1" || last.Status != agent.StatusDone {
		t.Fatalf("%+v, %v", last, err)
	}
	wrong(agent.Request{ContinueRunID: "r1"}, "cannot continue")
	next, err := run(agent.Request{Messages: []abi.Message{user("more")}})
	if err != nil || next.RunID == "r1" || next.Steps != 1 {
		t.Errorf("a new run is %+v, %v", next, err)
	}
	// Another agent on the same store knows the ids as well.
	other := newBench(t, &script{}, agent.Config{Checkpoints: store})
	if _, err := other.agent.Run(t.Context(), agent.Request{ThreadID: "elsewhere", RunID: "r1"}); err == nil || !strings.Contains(err.Error(), "already exists") {
		t.Errorf("an id of another process: %v", err)
	}
}

// TestAwaitingTasks: a run with a task under way waits, in the record or in the
// process, and what the task tells makes another step.
func TestAwaitingTasks(t *testing.T) {
	t.Parallel()
	for _, wait := range []bool{false, true} {
		t.Run(fmt.Sprint("wait ", wait), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				var pending atomic.Bool
				pending.Store(true)
				b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "spawn")), says("I wait."), says("It is done.")}},
					agent.Config{Notifications: agent.Notifications{Pending: func(string) bool { return pending.Load() }}})
				req := request(user("go"))
				req.Wait = wait
				out := start(t, b, req)
				synctest.Wait()
				finish := b.events[len(b.events)-1].Outcome
				if finish == nil || finish.Termination.Type != agent.NaturalEnd || finish.Status != agent.StatusWaiting || finish.StatusReason != "awaiting_tasks" || finish.Steps != 2 {
					t.Fatalf("finish %+v", finish)
				}
				if !wait {
					<-out
				}
				if err := b.agent.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeCompleted, TaskID: "bg_1", Result: "42"}); err != nil {
					t.Fatal(err)
				}
				pending.Store(false)
				if !wait {
					out = start(t, b, agent.Request{ThreadID: "t", Mode: abi.RunInternalWake})
				}
				end := <-out
				if end.err != nil || end.result.Status != agent.StatusDone || end.result.Steps != 3 || end.result.Response != "It is done." || end.result.RunID != finish.RunID {
					t.Errorf("result %+v, %v", end.result, end.err)
				}
				log := b.agent.Thread("t").Messages()
				if m := log[len(log)-2]; m.Role != abi.RoleUser || m.Visibility != abi.VisibilityInternal || !strings.HasPrefix(m.Text(), "<background-task-event ") {
					t.Errorf("the model reads %+v", m)
				}
				checkEvents(t, b.events)
			})
		})
	}
}

func TestTaskThatSaysNothingNeedsNoInference(t *testing.T) {
	t.Parallel()
	pending := true
	b := newBench(t, &script{answers: []abi.Message{says("I wait.")}}, agent.Config{Notifications: agent.Notifications{Pending: func(string) bool { return pending }}})
	mustRun(t, b, request(user("go")))
	pending = false
	r := mustRun(t, b, agent.Request{ThreadID: "t"})
	if r.Status != agent.StatusDone || r.Steps != 1 || len(b.model.requests) != 1 {
		t.Errorf("result %+v after %d requests", r, len(b.model.requests))
	}
}

func TestSteeringKeepsRoleAndVisibility(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "echo", "a")), says("done")}}, agent.Config{})
	hidden := user("hidden")
	hidden.Visibility = abi.VisibilityInternal
	b.tools.do = func(ctx context.Context, _ abi.ToolCall) (abi.ToolResult, error) {
		return abi.ToolResult{}, control(t, b, "t").Send(ctx, user("seen"), hidden)
	}
	mustRun(t, b, request(user("go")))
	log := b.agent.Thread("t").Messages()
	if log[3].Text() != "seen" || log[3].Visibility != "" || log[4].Text() != "hidden" || log[4].Visibility != abi.VisibilityInternal {
		t.Errorf("log %q", texts(log))
	}
}

// TestFinishSaysHowItStands: status and reason of the ends that have no test of their
// own.
func TestFinishSaysHowItStands(t *testing.T) {
	t.Parallel()
	b := newBench(t, &script{answers: []abi.Message{says("done")}}, agent.Config{})
	if r := mustRun(t, b, request(user("go"))); r.Status != agent.StatusDone || r.StatusReason != "natural" || r.Response != "done" {
		t.Errorf("natural end: %+v", r)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if r, err := b.agent.Run(ctx, request(user("go"))); err == nil || r.Status != agent.StatusDone || r.StatusReason != "cancelled" || r.Response != "" {
		t.Errorf("cancelled: %+v, %v", r, err)
	}
}

// TestEarlyDecision: a decision that comes while the run is still on its way to wait
// is executed by that run, and none is accepted after that.
func TestEarlyDecision(t *testing.T) {
	t.Parallel()
	for _, mode := range []agent.ToolMode{agent.Sequential, agent.ParallelBatch} {
		t.Run(string(mode), func(t *testing.T) {
			t.Parallel()
			b := newBench(t, &script{answers: []abi.Message{says("", calls("c1", "shell", "a")), says("done")}}, agent.Config{Execution: agent.Execution{ToolMode: mode}}, asking(""))
			var late error
			b.listen = func(e agent.Event) {
				if e.Type == agent.EventToolCallDone {
					if err := control(t, b, "t").Decide(agent.Decision{Target: "c1", Action: agent.ActionResume}); err != nil {
						t.Error(err)
					}
				}
				if e.Type == agent.EventRunFinish && e.Outcome.Status == agent.StatusDone {
					late = control(t, b, "t").Decide(agent.Decision{Target: "c1", Action: agent.ActionResume})
				}
			}
			r := mustRun(t, b, request(user("go")))
			if r.Status != agent.StatusDone || !slices.Equal(b.tools.calls, []string{"c1"}) || !errors.Is(late, agent.ErrNoTicket) {
				t.Errorf("result %+v, ran %v, later %v", r, b.tools.calls, late)
			}
		})
	}
}
