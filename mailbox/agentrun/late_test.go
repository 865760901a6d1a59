package agentrun_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// asking is a run that waits for a decision about its first call of two.
func asking(t *testing.T) (store.Store, *process, mailbox.Submission) {
	t.Helper()
	mem := memstore.New()
	p := newProcess(t, mem, "one", &counter{rounds: 2}, &tools{}, asks{})
	sub := p.submit(t, request(t, "t", user("go")))
	p.await(t, sub)
	return mem, p, sub
}

// wantRefused holds that a dispatch was acknowledged, with the report that what it brought was refused.
func (p *process) wantRefused(t *testing.T, sub mailbox.Submission) {
	t.Helper()
	d := p.await(t, sub)
	if d.Status != mailbox.Acked || d.Attempts != 0 || d.RunStatus != mailbox.RunWaiting || !strings.Contains(d.LastError, `no call or suspension ["`) {
		t.Errorf("dispatch is %+v", d)
	}
}

// wantWaiting holds that a run waits, and that a decision about what it waits for is taken.
func (p *process) wantWaiting(t *testing.T, run, target string) {
	t.Helper()
	synctest.Wait()
	if r := p.runOf(t, run); r.Status != mailbox.RunWaiting || r.Wait != string(agent.WaitPermission) {
		t.Errorf("run is %+v", r)
	}
	taken, err := p.box.Decide(t.Context(), run, yes(t, target)...)
	must(t, err)
	if !taken {
		t.Errorf("the decision about %q was not taken", target)
	}
	synctest.Wait()
}

// wantRefusal holds that the sender of a decision gets an error when no call waits for it.
func (p *process) wantRefusal(t *testing.T, run string, list ...mailbox.Decision) {
	t.Helper()
	if taken, err := p.box.Decide(t.Context(), run, list...); taken || !errors.Is(err, mailbox.ErrRefused) {
		t.Errorf("decision %q: taken %v, %v", list, taken, err)
	}
	_, err := p.box.SubmitBackground(t.Context(), mailbox.Request{Thread: "t", Run: run, Decisions: list})
	if !errors.Is(err, mailbox.ErrRefused) {
		t.Errorf("request %q: %v", list, err)
	}
	_, err = p.box.Submit(t.Context(), mailbox.Request{Thread: "t", Decisions: list})
	if !errors.Is(err, mailbox.ErrRefused) {
		t.Errorf("foreground request %q: %v", list, err)
	}
}

const counted = "counted to 2"

// TestWrongDecision: a decision that no call waits for is refused, and the run continues to wait.
func TestWrongDecision(t *testing.T) {
	t.Parallel()
	for name, wrong := range map[string]agent.Decision{
		"never asked":      {Target: "nobody", Action: agent.ActionResume},
		"not asked yet":    {Target: "ask_call_3_1", Action: agent.ActionResume},
		"no such action":   {Target: "ask_call_1_0", Action: "burn"},
		"no action at all": {Target: "ask_call_1_0"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				_, p, sub := asking(t)
				list, err := agentrun.Decisions(wrong)
				must(t, err)
				p.wantRefusal(t, sub.Run, list...)
				p.wantWaiting(t, sub.Run, "ask_call_1_0")
				p.wantWaiting(t, sub.Run, "call_3_1")
				if r := p.runOf(t, sub.Run); r.Response != counted || r.Termination != "natural" {
					t.Errorf("run is %+v", r)
				}
			})
		})
	}
}

// TestWrongDecision_unsettled: a run waits from its checkpoint on, also while its execution is not settled yet.
func TestWrongDecision_unsettled(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem, settle := memstore.New(), make(chan struct{})
		q := queueOf(t, mem)
		p := newProcess(t, &mailboxtest.Faulty{Store: mem, Plan: func(ctx context.Context, operation string) mailboxtest.Fault {
			if h, err := q.Thread(ctx, "t"); operation == "apply" && err == nil && h.Claim != nil && h.Open.Status == mailbox.RunWaiting {
				<-settle
			}
			return mailboxtest.FaultNone
		}}, "one", &counter{rounds: 2}, &tools{}, asks{})
		sub := p.submit(t, request(t, "t", user("go")))
		synctest.Wait()
		if h, err := q.Thread(t.Context(), "t"); err != nil || h.Claim == nil || h.Open.Status != mailbox.RunWaiting {
			t.Fatalf("the thread is %+v, %v", h, err)
		}
		other := newProcess(t, mem, "two", &counter{rounds: 2}, &tools{}, asks{})
		list, err := agentrun.Decisions(agent.Decision{Target: "nobody", Action: agent.ActionResume})
		must(t, err)
		other.wantRefusal(t, sub.Run, list...)
		close(settle)
		p.await(t, sub)
	})
}

// TestGarbledDecision: what cannot be read is no decision.
func TestGarbledDecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, p, sub := asking(t)
		p.wantRefusal(t, sub.Run, mailbox.Decision{Call: "ask_call_1_0", Data: []byte("\xc1\xff")})
		p.wantWaiting(t, sub.Run, "ask_call_1_0")
	})
}

// TestLateDecision: two decisions about one call, and a late one, leave the run at what it waits for by then. So it is
// also when they were queued before anybody could tell, by a process that knows nothing of calls, and when another process executes
// them.
func TestLateDecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem, p, sub := asking(t)
		client, err := mailbox.New(t.Context(), mailbox.Config{Store: mem, Runtime: struct{ mailbox.Runtime }{p.run}, Owner: "client"})
		must(t, err)
		defer func() { must(t, client.Close(context.WithoutCancel(t.Context()))) }()
		must(t, p.box.Stop(t.Context()))
		var queued []mailbox.Submission
		for _, target := range []string{"ask_call_1_0", "call_1_0", "ask_call_1_0", "ask_call_3_1x"} {
			s, err := client.SubmitBackground(t.Context(), mailbox.Request{Thread: "t", Decisions: yes(t, target)})
			must(t, err)
			queued = append(queued, s)
		}
		two := newProcess(t, mem, "two", &counter{rounds: 2}, &tools{}, asks{})
		if d := two.await(t, queued[0]); d.Status != mailbox.Acked || d.LastError != "" {
			t.Errorf("dispatch is %+v", d)
		}
		for _, s := range queued[1:] {
			two.wantRefused(t, s)
		}
		two.wantRefusal(t, sub.Run, yes(t, "ask_call_1_0")...)
		two.wantWaiting(t, sub.Run, "ask_call_3_1")
		if r := two.runOf(t, sub.Run); r.Status != mailbox.RunDone || r.Response != counted {
			t.Errorf("run is %+v", r)
		}
		wantLog(t, mem, "t", "user: go", "assistant: ", "tool: ok", "assistant: ", "tool: ok", "assistant: counted to 2")
	})
}

// TestKeyedDecision: the same request under one key is the same submission, also when the run is past it.
func TestKeyedDecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		_, p, sub := asking(t)
		r := mailbox.Request{Thread: "t", Run: sub.Run, Decisions: yes(t, "ask_call_1_0"), Key: "click"}
		first := p.submit(t, r)
		p.await(t, first)
		if again := p.submit(t, r); again.Dispatch != first.Dispatch || !again.Repeated {
			t.Errorf("the same request is %+v, and was %+v", again, first)
		}
		p.wantWaiting(t, sub.Run, "ask_call_3_1")
	})
}

// nosy is a tool that has two questions about its call, under one name.
type nosy struct {
	tools
	calls int
}

func (s *nosy) CallTool(ctx context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	s.calls++
	if s.calls <= 2 {
		return abi.ToolResult{Status: abi.ToolPending, Message: "really?", Ticket: &abi.SuspendTicket{ID: "ask_" + call.ID, Mode: abi.ResumePassDecision}}, nil
	}
	return s.tools.CallTool(ctx, call)
}

// TestSecondQuestion: two answers to one question are not answers to two, although the call asks both under one name.
func TestSecondQuestion(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &nosy{}
		p := newProcess(t, memstore.New(), "one", &counter{rounds: 1}, s)
		sub := p.submit(t, request(t, "t", user("go")))
		p.await(t, sub)
		r := mailbox.Request{Thread: "t", Run: sub.Run, Decisions: yes(t, "ask_call_1_0"), At: time.Now().Add(time.Second)}
		first, second := p.submit(t, r), p.submit(t, r)
		if d := p.await(t, first); d.RunStatus != mailbox.RunWaiting || d.LastError != "" {
			t.Errorf("dispatch is %+v", d)
		}
		p.wantRefused(t, second)
		if s.calls != 2 {
			t.Fatalf("the tool was called %d times", s.calls)
		}
		p.wantWaiting(t, sub.Run, "call_1_0")
		if r := p.runOf(t, sub.Run); r.Response != "counted to 1" || s.calls != 3 {
			t.Errorf("run is %+v after %d calls", r, s.calls)
		}
	})
}

// TestLapsedDecision: an answer that comes when the wait has lapsed is refused, and makes no run.
func TestLapsedDecision(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		s := &tools{}
		p := newProcess(t, memstore.New(), "one", &counter{rounds: 1}, s, asks{})
		sub := p.submit(t, request(t, "t", user("go")))
		p.await(t, sub)
		_, err := p.box.CancelRun(t.Context(), sub.Run)
		must(t, err)
		_, err = p.box.SubmitBackground(t.Context(), mailbox.Request{Thread: "t", Decisions: yes(t, "ask_call_1_0")})
		if !errors.Is(err, mailbox.ErrRefused) {
			t.Errorf("the answer is %v", err)
		}
		if list, err := p.box.Runs(t.Context(), mailbox.RunQuery{Thread: "t", Limit: 9}); err != nil || len(list) != 1 {
			t.Errorf("runs are %+v, %v", list, err)
		}
		if len(s.keys) != 0 {
			t.Errorf("executed: %q", s.keys)
		}
	})
}
