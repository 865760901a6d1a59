package agentrun_test

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/replay"
	"github.com/mortise-dev/mortise/llm/transcript"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/store/memstore"
)

const recorded = `
{"role": "user", "content": "How many?"}
{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "bash", "arguments": "{}"}}]}
{"role": "tool", "tool_call_id": "c1", "content": "12"}
{"role": "assistant", "content": "Twelve."}
{"role": "user", "content": "Thanks."}
{"role": "assistant", "content": "Not at all."}
`

// TestReplay takes a recorded conversation through two processes, one after the other.
func TestReplay(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file, err := transcript.Read(strings.NewReader(recorded), transcript.Options{})
		must(t, err)
		r, err := replay.New(file.Conversations[0], replay.Config{})
		must(t, err)
		store := memstore.New()
		one := newProcess(t, store, "one", r, r)
		turn, _ := r.Next()
		sub, err := one.box.Submit(t.Context(), request(t, "t", turn.Messages...))
		must(t, err)
		var kinds []string
		for seq := uint64(0); ; seq++ {
			e, err := sub.Events.Next(t.Context(), seq)
			if errors.Is(err, mailbox.ErrEnd) {
				break
			}
			must(t, err)
			kinds = append(kinds, e.Type)
		}
		for _, want := range []agent.EventType{agent.EventRunStart, agent.EventToolCallDone, agent.EventRunFinish} {
			if !slices.Contains(kinds, string(want)) {
				t.Errorf("no event %s among %q", want, kinds)
			}
		}
		if kinds[len(kinds)-1] != mailbox.EventSettled {
			t.Errorf("the last event is %q", kinds[len(kinds)-1])
		}
		must(t, one.box.Close(t.Context()))
		two := newProcess(t, store, "two", r, r)
		turn, _ = r.Next()
		second := two.submit(t, request(t, "t", turn.Messages...))
		if d := two.await(t, second); d.Status != mailbox.Acked || d.Response != "Not at all." || d.Termination != "natural" {
			t.Errorf("dispatch is %+v", d)
		}
		if run := two.runOf(t, sub.Run); run.Response != "Twelve." || run.Status != mailbox.RunDone {
			t.Errorf("run is %+v", run)
		}
		wantLog(t, store, "t", "user: How many?", "assistant: ", "tool: 12", "assistant: Twelve.", "user: Thanks.", "assistant: Not at all.")
	})
}

// TestWaitsAndGoesOn: a run that asks gives its worker back and continues in another process.
func TestWaitsAndGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		s := &tools{}
		one := newProcess(t, store, "one", &counter{rounds: 1}, s, asks{}, counts{})
		sub := one.submit(t, request(t, "t", user("go")))
		if d := one.await(t, sub); d.Status != mailbox.Acked || d.RunStatus != mailbox.RunWaiting {
			t.Errorf("dispatch is %+v", d)
		}
		synctest.Wait() // the worker leaves after the end was reported
		if n := len(one.box.Executing()); n != 0 {
			t.Errorf("%d executions are under way", n)
		}
		if run := one.runOf(t, sub.Run); run.Status != mailbox.RunWaiting || run.Wait != string(agent.WaitPermission) {
			t.Errorf("run is %+v", run)
		}
		image, err := one.box.Image(t.Context(), "t")
		must(t, err)
		if r, err := agentrun.DecodeRun(image); err != nil || r.RunID != sub.Run || r.Waiting == nil || len(r.Waiting.Tickets) != 1 {
			t.Errorf("the image has %+v, %v", r, err)
		}
		must(t, one.box.Close(t.Context()))
		two := newProcess(t, store, "two", &counter{rounds: 1}, s, asks{}, counts{})
		answer := map[string]any{"int": int64(3), "float": 3.0, "bytes": []byte{1}}
		var got any
		s.during = func(_ context.Context, call abi.ToolCall) { got = call.Resume.Result }
		list, err := agentrun.Decisions(agent.Decision{Target: "ask_call_1_0", Action: agent.ActionResume, Result: answer})
		must(t, err)
		ok, err := two.box.Decide(t.Context(), sub.Run, list...)
		must(t, err)
		synctest.Wait()
		if run := two.runOf(t, sub.Run); !ok || run.Status != mailbox.RunDone || run.Response != "counted to 1" {
			t.Errorf("decided: %v, run is %+v", ok, run)
		}
		wantLog(t, store, "t", "user: go", "assistant: ", "tool: ok", "assistant: counted to 1")
		if len(s.keys) != 1 || !reflect.DeepEqual(got, any(answer)) {
			t.Errorf("the tool was called %d times, with the decision %#v", len(s.keys), got)
		}
	})
}

// TestPatience: a run that waits longer than it may is ended, and the thread takes what comes next. One that is decided about
// before continues.
func TestPatience(t *testing.T) {
	t.Parallel()
	for _, late := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			runtime, err := phases.New(phases.Config{Plugins: []phases.Plugin{asks{}}})
			must(t, err)
			run, err := agentrun.New(agentrun.Config{
				Agent: func(context.Context, *mailbox.Job) (agent.Config, error) {
					return agent.Config{Profile: agent.Profile{Model: &counter{rounds: 1}, Tools: &tools{}, Phases: runtime}}, nil
				},
				Patience: func(r agent.Record, w agent.Waiting) time.Duration {
					if r.ThreadID != "t" || w.Reason != agent.WaitPermission {
						t.Errorf("asked about %+v", w)
					}
					return time.Hour
				},
			})
			must(t, err)
			p := &process{run: run}
			p.box, err = mailbox.New(t.Context(), mailbox.Config{Store: memstore.New(), Runtime: run})
			must(t, err)
			defer func() { must(t, p.box.Close(t.Context())) }()
			must(t, p.box.Start(t.Context()))
			began := time.Now().UTC().Truncate(time.Millisecond)
			sub := p.submit(t, request(t, "t", user("go")))
			p.await(t, sub)
			h, err := p.box.Thread(t.Context(), "t")
			must(t, err)
			if r := p.runOf(t, sub.Run); !r.WaitUntil.Equal(began.Add(time.Hour)) || !h.DueAt.Equal(r.WaitUntil) {
				t.Errorf("it waits until %v, is due at %v; it began at %v", r.WaitUntil, h.DueAt, began)
			}
			pause, termination := time.Hour-time.Minute, "natural"
			if late {
				pause, termination = time.Hour+time.Minute, mailbox.TerminationCancelled
			}
			time.Sleep(pause)
			list, err := agentrun.Decisions(agent.Decision{Target: "ask_call_1_0", Action: agent.ActionResume})
			must(t, err)
			taken, err := p.box.Decide(t.Context(), sub.Run, list...)
			must(t, err)
			synctest.Wait()
			if r := p.runOf(t, sub.Run); taken == late || r.Status != mailbox.RunDone || r.Termination != termination {
				t.Errorf("decided %v, run is %+v", taken, r)
			}
			next := p.submit(t, request(t, "t", user("again")))
			if d := p.await(t, next); d.Status != mailbox.Acked || d.RunID == sub.Run {
				t.Errorf("the next request came to %+v", d)
			}
		})
	}
}

// TestRetryGoesOn: an attempt that failed is continued, and nothing is said twice.
func TestRetryGoesOn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		model := &counter{rounds: 2, fail: func(n int) error {
			if n == 2 || n == 3 {
				return &llm.Error{Kind: llm.KindOverloaded}
			}
			return nil
		}}
		s := &tools{}
		p := newProcess(t, store, "one", model, s, counts{})
		sub := p.submit(t, request(t, "t", user("go")))
		if d := p.await(t, sub); d.Status != mailbox.Acked || d.Attempts != 0 || d.LastError == "" || d.Response != "counted to 2" {
			t.Errorf("dispatch is %+v", d)
		}
		wantLog(t, store, "t", "user: go", "assistant: ", "tool: ok", "assistant: ", "tool: ok", "assistant: counted to 2")
		if len(s.keys) != 2 {
			t.Errorf("the tool was called %d times", len(s.keys))
		}
	})
}

func TestPermanentFailure(t *testing.T) {
	t.Parallel()
	for _, kind := range []llm.Kind{llm.KindUnauthorized, llm.KindModelNotFound, llm.KindContentFiltered, llm.KindInvalidRequest} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			model := &counter{fail: func(n int) error {
				if n == 1 {
					return &llm.Error{Kind: kind}
				}
				return nil
			}}
			p := newProcess(t, store, "one", model, &tools{})
			sub := p.submit(t, request(t, "t", user("go")))
			if d := p.await(t, sub); d.Status != mailbox.DeadLetter || d.Attempts != 1 {
				t.Errorf("%s: dispatch is %+v", kind, d)
			}
			if run := p.runOf(t, sub.Run); run.Status != mailbox.RunDone || run.Termination != mailbox.TerminationError {
				t.Errorf("%s: run is %+v", kind, run)
			}
			// The thread continues.
			if d := p.await(t, p.submit(t, request(t, "t", user("again")))); d.Status != mailbox.Acked {
				t.Errorf("%s: dispatch is %+v", kind, d)
			}
		})
	}
}

// TestCancelKeepsWhatWasSaid: what a run had come to is in the log, and the run is cancelled.
func TestCancelKeepsWhatWasSaid(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		s := &tools{}
		s.during = func(ctx context.Context, _ abi.ToolCall) {
			if len(s.keys) == 2 {
				<-ctx.Done()
			}
		}
		p := newProcess(t, store, "one", &counter{rounds: 5}, s)
		sub := p.submit(t, request(t, "t", user("go")))
		synctest.Wait()
		ok, err := p.box.CancelRun(t.Context(), sub.Run)
		must(t, err)
		d := p.await(t, sub)
		if run := p.runOf(t, sub.Run); !ok || d.Status != mailbox.Cancelled || run.Termination != mailbox.TerminationCancelled {
			t.Errorf("cancelled: %v, dispatch %+v, run %+v", ok, d, run)
		}
		if got := log(t, store, "t"); len(got) < 4 || got[2] != "tool: ok" {
			t.Errorf("log is %q", got)
		}
		s.during = nil
		if d := p.await(t, p.submit(t, request(t, "t", user("again")))); d.Status != mailbox.Acked {
			t.Errorf("dispatch is %+v", d)
		}
	})
}

// TestSteer: a message for a run under way is seen by its next inference, and kept once.
func TestSteer(t *testing.T) {
	t.Parallel()
	for _, remote := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			store := memstore.New()
			release := make(chan struct{})
			s := &tools{during: func(context.Context, abi.ToolCall) { <-release }}
			model := &counter{rounds: 1}
			here := newProcess(t, store, "here", model, s)
			from := here
			if remote {
				from = newProcess(t, store, "there", model, s)
			}
			sub := here.submit(t, request(t, "t", user("go")))
			synctest.Wait()
			steering := user("psst")
			steering.ID = "m-psst"
			for range 2 { // it came twice
				live, err := from.box.SubmitLive(t.Context(), request(t, "t", steering), sub.Run)
				must(t, err)
				if live.Dispatch != sub.Dispatch || !live.Running {
					t.Errorf("submission is %+v", live)
				}
			}
			close(release)
			here.await(t, sub)
			synctest.Wait()
			if last := model.seen[1]; last[len(last)-1] != "user: psst" {
				t.Errorf("the second inference saw %q", last)
			}
			wantLog(t, store, "t", "user: go", "assistant: ", "tool: ok", "user: psst", "assistant: ", "tool: ok", "assistant: counted to 1")
			list, err := queueOf(t, store).Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Limit: 10})
			must(t, err)
			if len(list) != 1 {
				t.Errorf("%d dispatches", len(list))
			}
			// The same message once more, and the run that it was for is over.
			late := here.submit(t, request(t, "t", steering))
			if d := here.await(t, late); d.Termination != agentrun.Duplicate {
				t.Errorf("dispatch is %+v", d)
			}
		})
	}
}

// TestWakeAfterRestart: a run that waited for tasks when its process ended continues, once, when the mailbox starts
// again.
func TestWakeAfterRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		waiting := true
		start := func(owner string) *process {
			p := newProcess(t, store, owner, &counter{}, &tools{})
			return p
		}
		run, err := agentrun.New(agentrun.Config{Agent: func(context.Context, *mailbox.Job) (agent.Config, error) {
			return agent.Config{Profile: agent.Profile{Model: &counter{}, Phases: emptyPhases(t)}, Notifications: agent.Notifications{Pending: func(string) bool { return waiting }}}, nil
		}})
		must(t, err)
		box, err := mailbox.New(t.Context(), mailbox.Config{Store: store, Runtime: run, Owner: "first"})
		must(t, err)
		must(t, box.Start(t.Context()))
		sub, err := box.SubmitBackground(t.Context(), request(t, "t", user("go")))
		must(t, err)
		synctest.Wait()
		must(t, box.Close(t.Context()))
		one := start("one")
		synctest.Wait()
		if r := one.runOf(t, sub.Run); r.Status != mailbox.RunDone {
			t.Errorf("run is %+v", r)
		}
		list, err := queueOf(t, store).Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Limit: 10})
		must(t, err)
		if len(list) != 2 || list[1].Origin != mailbox.OriginInternal || list[1].RunID != sub.Run {
			t.Errorf("dispatches: %+v", list)
		}
		texts := log(t, store, "t")
		if !slices.Contains(texts, "user: "+agentrun.WakeText) {
			t.Errorf("log is %q", texts)
		}
	})
}

// TestAgentErrors: what no retry fixes is not tried again.
func TestAgentErrors(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		make     func() (agent.Config, error)
		attempts int
	}{
		"classify_error_agent_not_found_is_permanent": {func() (agent.Config, error) {
			return agent.Config{AgentID: "another", Profile: agent.Profile{Model: &counter{}, Phases: emptyPhases(t)}}, nil // the request names "writer"
		}, 1},
		"agent_that_the_embedder_does_not_know": {func() (agent.Config, error) {
			return agent.Config{}, fmt.Errorf("%w %q", agent.ErrNoAgent, "writer")
		}, 1},
		"classify_error_resolve_failed_is_permanent": {func() (agent.Config, error) { return agent.Config{}, nil }, 1},
		"classify_error_inference_failed_is_transient": {func() (agent.Config, error) {
			model := &counter{fail: func(int) error { return &llm.Error{Kind: llm.KindProvider} }}
			return agent.Config{Profile: agent.Profile{Model: model, Phases: emptyPhases(t)}, Inference: agent.Inference{Retry: llm.Retry{MaxRetries: -1}}}, nil
		}, 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				run, err := agentrun.New(agentrun.Config{Agent: func(context.Context, *mailbox.Job) (agent.Config, error) { return c.make() }})
				must(t, err)
				box, err := mailbox.New(t.Context(), mailbox.Config{Store: memstore.New(), Runtime: run})
				must(t, err)
				must(t, box.Start(t.Context()))
				r := request(t, "t", user("go"))
				r.Agent = "writer"
				sub, err := box.SubmitBackground(t.Context(), r)
				must(t, err)
				d, err := box.Await(t.Context(), sub.Dispatch)
				must(t, err)
				if d.Status != mailbox.DeadLetter || d.Attempts != c.attempts || strings.HasPrefix(name, "classify_error_agent_not_found") && !strings.Contains(d.LastError, `there is no agent "writer"`) {
					t.Errorf("dispatch is %+v", d)
				}
				must(t, box.Close(t.Context()))
			})
		})
	}
}

// TestWakeRequest: the request that Wake makes lets the run that waits for tasks continue.
func TestWakeRequest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store, pending := memstore.New(), true
		run, err := agentrun.New(agentrun.Config{Agent: func(context.Context, *mailbox.Job) (agent.Config, error) {
			return agent.Config{Profile: agent.Profile{Model: &counter{}, Phases: emptyPhases(t)}, Notifications: agent.Notifications{Pending: func(string) bool { return pending }}}, nil
		}})
		must(t, err)
		box, err := mailbox.New(t.Context(), mailbox.Config{Store: store, Runtime: run})
		must(t, err)
		must(t, box.Start(t.Context()))
		sub, err := box.SubmitBackground(t.Context(), request(t, "t", user("go")))
		must(t, err)
		synctest.Wait()
		waiting, _, err := box.Run(t.Context(), sub.Run)
		must(t, err)
		if waiting.Status != mailbox.RunWaiting || waiting.Wait != string(agent.WaitTasks) {
			t.Errorf("run is %+v", waiting)
		}
		pending = false
		wake, ok := agentrun.Wake(waiting)
		if !ok {
			t.Fatal("no wake")
		}
		_, err = box.SubmitBackground(t.Context(), wake)
		must(t, err)
		synctest.Wait()
		done, _, err := box.Run(t.Context(), sub.Run)
		must(t, err)
		if done.Status != mailbox.RunDone {
			t.Errorf("run is %+v", done)
		}
		wantLog(t, store, "t", "user: go", "assistant: counted to 0", "user: "+agentrun.WakeText, "assistant: counted to 0")
		list, err := queueOf(t, store).Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Limit: 10})
		must(t, err)
		if len(list) != 2 || list[1].Origin != mailbox.OriginInternal {
			t.Errorf("dispatches: %+v", list)
		}
		must(t, box.Close(t.Context()))
	})
}
