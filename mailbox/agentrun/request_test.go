package agentrun_test

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestExtras(t *testing.T) {
	t.Parallel()
	full := agentrun.Extras{
		FrontendTools: []abi.Tool{{Name: "confirm", Description: "asks", Kind: abi.ToolRead}}, Override: &abi.InferenceOverride{Model: new("small")},
		TransportRequestID: "http-1", SenderID: "alice", ParentThreadID: "above", DispatchIDHint: "hint",
	}
	t.Run("run_request_extras_serde_roundtrip", func(t *testing.T) {
		t.Parallel()
		data, err := full.Encode()
		must(t, err)
		back, err := agentrun.DecodeExtras(data)
		must(t, err)
		if !reflect.DeepEqual(back, full) {
			t.Errorf("came back as %+v", back)
		}
	})
	t.Run("run_request_extras_empty_returns_none", func(t *testing.T) {
		t.Parallel()
		data, err := agentrun.Extras{}.Encode()
		must(t, err)
		if data != nil {
			t.Errorf("empty extras are %q", data)
		}
	})
	t.Run("run_request_extras_corrupt_json_returns_error", func(t *testing.T) {
		t.Parallel()
		for _, data := range []string{"\xc1", "{not json", "\x81\xa8override"} {
			if _, err := agentrun.DecodeExtras([]byte(data)); !errors.Is(err, mailbox.ErrPermanent) {
				t.Errorf("%q: %v", data, err)
			}
		}
		synctest.Test(t, func(t *testing.T) {
			p := newProcess(t, memstore.New(), "one", &counter{}, &tools{})
			r := request(t, "t", user("go"))
			r.Extras = []byte("\xc1")
			if d := p.await(t, p.submit(t, r)); d.Status != mailbox.DeadLetter || d.Attempts != 1 {
				t.Errorf("dispatch is %+v", d)
			}
		})
	})
	t.Run("run_request_extras_apply_to_request", func(t *testing.T) {
		t.Parallel()
		synctest.Test(t, func(t *testing.T) {
			r := request(t, "t", user("go"))
			must(t, full.Apply(&r))
			r.Mode, r.Adapter, r.Parent = string(abi.RunInternalWake), "a2a", "parent"
			seen := identities(t, r)
			want := abi.RunIdentity{
				ThreadID: "t", RunID: seen.run.ID, ParentRunID: "parent", DispatchID: "hint", SessionID: seen.dispatch.Instance,
				Mode: abi.RunInternalWake, Adapter: "a2a", Origin: "user",
				ParentThreadID: "above", SenderID: "alice", TransportRequestID: "http-1", DispatchIDHint: "hint",
			}
			if seen.identity != want {
				t.Errorf("the run is %+v, want %+v", seen.identity, want)
			}
			if len(seen.tools) != 1 || seen.tools[0] != "confirm" || seen.model != "small" {
				t.Errorf("tools %q, model %q", seen.tools, seen.model)
			}
			got := [...]string{seen.request.TransportRequestID, seen.request.SenderID, seen.request.ParentThreadID, seen.request.DispatchIDHint, seen.dispatch.ID}
			if want := [...]string{"http-1", "alice", "above", "hint", "hint"}; got != want {
				t.Errorf("the request has %q, want %q", got, want)
			}
		})
	})
}

// seen is what a run received.
type seen struct {
	identity abi.RunIdentity
	dispatch mailbox.Dispatch
	run      mailbox.Run
	request  mailbox.Request
	tools    []string
	model    string
}

// identities executes a request and returns what the run received.
func identities(t *testing.T, r mailbox.Request) (out seen) {
	t.Helper()
	store := memstore.New()
	run, err := agentrun.New(agentrun.Config{Agent: func(_ context.Context, j *mailbox.Job) (agent.Config, error) {
		out.request = j.Request
		return agent.Config{
			Profile: agent.Profile{Model: &asked{out: &out}, Phases: emptyPhases(t)}, Listen: func(_ context.Context, e agent.Event) {
				if e.Identity != nil {
					out.identity = *e.Identity
				}
			},
		}, nil
	}})
	must(t, err)
	box, err := mailbox.New(t.Context(), mailbox.Config{Store: store, Runtime: run})
	must(t, err)
	must(t, box.Start(t.Context()))
	sub, err := box.SubmitBackground(t.Context(), r)
	must(t, err)
	out.dispatch, err = box.Await(t.Context(), sub.Dispatch)
	must(t, err)
	out.run, _, err = box.Run(t.Context(), sub.Run)
	must(t, err)
	must(t, box.Close(t.Context()))
	return out
}

// TestUnread: what came when the run had ended already is the next run's.
func TestUnread(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := memstore.New()
		model := &counter{}
		late := &atEnd{entered: make(chan struct{}), leave: make(chan struct{})}
		p := newProcess(t, store, "one", model, &tools{}, late)
		sub := p.submit(t, request(t, "t", user("go")))
		<-late.entered
		live, err := p.box.SubmitLive(t.Context(), request(t, "t", user("one more")), sub.Run)
		must(t, err)
		if !live.Running || live.Dispatch != sub.Dispatch {
			t.Errorf("submission is %+v", live)
		}
		close(late.leave)
		synctest.Wait()
		wantLog(t, store, "t", "user: go", "assistant: counted to 0", "user: one more", "assistant: counted to 0")
		list, err := queueOf(t, store).Dispatches(t.Context(), mailbox.DispatchQuery{Thread: "t", Limit: 10})
		must(t, err)
		if len(list) != 2 || list[1].Status != mailbox.Acked || list[1].Termination != "natural" {
			t.Errorf("dispatches: %+v", list)
		}
	})
}
