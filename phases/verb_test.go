package phases_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/phases/phasestest"
)

func rewrite(arguments any) abi.Effect {
	return abi.Effect{Type: abi.EffectRewriteCall, Arguments: arguments}
}

// at is a hook that may transform.
func at(p abi.Phase) abi.Hook { return abi.Hook{Phase: p, Messages: abi.ViewAll} }

// Two plugins that rewrite one call: the later one is called again, with what the earlier
// one made, and the record says whose arguments count.
func TestRewriteCall(t *testing.T) {
	t.Parallel()
	second := plug("b", at(abi.BeforeToolExecute), func(_ ctx, e *abi.Event) (*abi.Reply, error) {
		arguments, _ := e.Call.Arguments.(map[string]any)
		path, _ := arguments["path"].(string)
		return &abi.Reply{Effects: []abi.Effect{rewrite(fields{"path": path + "+b"})}}, nil
	})
	g := build(t, phases.Config{}, plug("a", at(abi.BeforeToolExecute), effects(rewrite(fields{"path": "a"}))), second,
		plug("c", at(abi.BeforeToolExecute), silent))
	f := phasestest.Frame(abi.BeforeToolExecute)
	f.RewrittenBy = []string{"z"}
	out := g.fire(t, f)
	if want := (&phases.Rewrite{Arguments: fields{"path": "a+b"}, By: []string{"a", "b"}}); !reflect.DeepEqual(out.Rewrite, want) {
		t.Errorf("rewrite %+v", out.Rewrite)
	}
	if !reflect.DeepEqual(f.Call.Arguments, fields{"path": "go.mod"}) {
		t.Errorf("the frame's call was changed: %v", f.Call)
	}
	events := second.Events()
	if len(events) != 2 || !slices.Equal(events[0].RewrittenBy, []string{"z"}) || !slices.Equal(events[1].RewrittenBy, []string{"z", "a"}) {
		t.Errorf("events %+v", events)
	}
	if rec := g.only(t, "a"); !rec.Applied[0].Overridden || rec.Applied[0].What != "rewrite_call" || rec.Applied[0].Target != "read_file" {
		t.Errorf("record %+v", rec)
	}
	recs := g.Of("b")
	if len(recs) != 2 || recs[0].Deferred != `the call was changed by "a"` || recs[1].Applied[0].Overridden {
		t.Errorf("records %+v", recs)
	}
}

// refusedFor fires one hook with an effect, and wants the reply refused for a reason.
func refusedFor(t *testing.T, f phases.Frame, e abi.Effect, mode abi.Mode, want string) {
	t.Helper()
	g := build(t, phases.Config{}, plug("p", abi.Hook{Phase: f.Phase, Mode: mode, OnFailure: abi.FailIgnore}, effects(e)))
	out := g.fire(t, f)
	rec := g.only(t, "p")
	if len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, want) {
		t.Errorf("refused %+v, want %q", rec.Refused, want)
	}
	if out.Rewrite != nil || out.Response != nil || out.Result != nil || out.Notifications != nil {
		t.Errorf("outcome %+v", out)
	}
}

func TestRewriteCallRefused(t *testing.T) {
	t.Parallel()
	f := phasestest.Frame(abi.ToolGate)
	f.CheckArguments = func(v any) error {
		if m, ok := v.(map[string]any); !ok || m["path"] == nil {
			return errors.New("path is missing")
		}
		return nil
	}
	refusedFor(t, f, rewrite(nil), abi.ModeTransform, "arguments is missing; give all arguments")
	unchecked := f
	unchecked.CheckArguments = nil
	refusedFor(t, unchecked, rewrite(`{"path": "x"}`), abi.ModeTransform, "arguments: string is no object")
	unchecked.Call = &abi.ToolCall{ID: "c", Name: "patch", Arguments: "a text"} // a tool that takes text
	g := build(t, phases.Config{}, plug("p", at(f.Phase), effects(rewrite("another"))))
	if out := g.fire(t, unchecked); out.Rewrite == nil || out.Rewrite.Arguments != "another" {
		t.Errorf("rewrite %+v", out.Rewrite)
	}
	refusedFor(t, f, rewrite(fields{"file": "x"}), abi.ModeTransform, `do not fit the tool "read_file": path is missing`)
	refusedFor(t, f, rewrite(fields{"path": "x"}), abi.ModeObserve, "mode is observe, and this needs transform")
	refusedFor(t, phasestest.Frame(abi.AfterToolExecute), rewrite(fields{"path": "x"}), abi.ModeGate, "only at tool_gate, before_tool_execute")
	f.Call = nil
	refusedFor(t, f, rewrite(fields{"path": "x"}), abi.ModeTransform, "no call")
	g = build(t, phases.Config{}, plug("p", at(abi.ToolGate), effects(rewrite(fields{"path": "x"}), rewrite(fields{"path": "y"}))))
	g.fire(t, phasestest.Frame(abi.ToolGate))
	if rec := g.only(t, "p"); len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, "two rewrite_call") {
		t.Errorf("record %+v", rec)
	}
}

func answer(content string, calls ...abi.ToolCall) abi.Effect {
	return abi.Effect{Type: abi.EffectReplaceResponse, Message: &abi.Message{Content: text(content), ToolCalls: calls}}
}

// A replaced answer keeps role and id; calls of the model keep their ids, new ones get
// fresh ones; the later plugin reads what the earlier one made.
func TestReplaceResponse(t *testing.T) {
	t.Parallel()
	f := phasestest.Frame(abi.AfterInference)
	f.HasTool = func(name string) bool { return name == "write_file" }
	original := f.Response.Message
	second := plug("b", at(f.Phase), func(_ ctx, e *abi.Event) (*abi.Reply, error) {
		m := e.Response.Message
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceResponse, Message: &abi.Message{
			ID: "mine", Role: m.Role, Content: text(m.Text() + " And more."), ToolCalls: m.ToolCalls,
		}}}}, nil
	})
	g := build(t, phases.Config{}, plug("a", at(f.Phase), effects(answer("Nothing.", original.ToolCalls[0],
		abi.ToolCall{ID: "made_up", Name: "write_file", Arguments: fields{"n": 1}}))), second)
	out := g.fire(t, f)
	if out.Response == nil || !slices.Equal(out.ReplacedBy, []string{"a", "b"}) {
		t.Fatalf("outcome %+v", out)
	}
	m := out.Response.Message
	if m.ID != original.ID || m.Role != abi.RoleAssistant || m.Text() != "Nothing. And more." || len(m.ToolCalls) != 2 ||
		m.ToolCalls[0].ID != "call_1" || m.ToolCalls[1].ID != "call_new1" || out.Response.Usage != f.Response.Usage {
		t.Errorf("answer %+v", out.Response)
	}
	if !reflect.DeepEqual(f.Response.Message, original) {
		t.Error("the frame's answer was changed")
	}
	if recs := g.Of("b"); len(recs) != 2 || recs[0].Deferred != `the answer was changed by "a"` || !g.only(t, "a").Applied[0].Overridden {
		t.Errorf("records %+v", g.Records())
	}
}

func TestReplaceResponseRefused(t *testing.T) {
	t.Parallel()
	f := phasestest.Frame(abi.AfterInference)
	f.HasTool = func(name string) bool { return name == "read_file" }
	f.Response.Message.Content = append(f.Response.Message.Content, abi.ContentBlock{Type: abi.BlockThinking, Text: "hm", Signature: "s"})
	call := f.Response.Message.ToolCalls[0]
	thinks := func(text string) abi.Effect {
		return abi.Effect{Type: abi.EffectReplaceResponse, Message: &abi.Message{Content: []abi.ContentBlock{{Type: abi.BlockThinking, Text: text, Signature: "s"}}}}
	}
	refusedFor(t, f, answer("x", abi.ToolCall{Name: "none"}), abi.ModeTransform, `no tool "none"`)
	refusedFor(t, f, answer("x", abi.ToolCall{}), abi.ModeTransform, "name is missing")
	refusedFor(t, f, answer("x", call, call), abi.ModeTransform, "two of its calls have the id")
	refusedFor(t, f, thinks("ha"), abi.ModeTransform, "thinking can be kept")
	refusedFor(t, f, abi.Effect{Type: abi.EffectReplaceResponse}, abi.ModeTransform, "message is missing")
	refusedFor(t, f, abi.Effect{Type: abi.EffectReplaceResponse, Message: &abi.Message{}}, abi.ModeTransform, "content is missing")
	refusedFor(t, f, abi.Effect{Type: abi.EffectReplaceResponse, Message: &abi.Message{Role: abi.RoleUser, Content: text("x")}}, abi.ModeTransform, "is not assistant")
	refusedFor(t, phasestest.Frame(abi.StepEnd), answer("x"), abi.ModeTransform, "only at after_inference")
	failed := f
	failed.Response = &abi.Response{Error: "no answer"}
	refusedFor(t, failed, answer("x"), abi.ModeTransform, "the inference failed")
	g := build(t, phases.Config{}, plug("p", at(f.Phase), effects(thinks("hm"))))
	if out := g.fire(t, f); out.Response == nil || len(out.Response.Message.Content) != 1 {
		t.Errorf("a thinking block that was kept: %+v", out)
	}
}

// A replaced result is that of the event and the content of its message, for later hooks
// as well: one of them that would replace the message is called again.
func TestReplaceResult(t *testing.T) {
	t.Parallel()
	f := phasestest.Frame(abi.AfterToolExecute)
	f.Messages = append(f.Messages, result("m3", "call_1"))
	second := plug("b", at(f.Phase), func(_ ctx, e *abi.Event) (*abi.Reply, error) {
		said := e.Messages[len(e.Messages)-1]
		if blocks := e.Result.Content; len(blocks) == 0 {
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceMessage, MessageID: "m3", Content: text(said.Text() + "!")}}}, nil
		}
		return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectReplaceMessage, MessageID: "m3", Content: text("leaked")}}}, nil
	})
	g := build(t, phases.Config{}, plug("a", at(f.Phase), effects(abi.Effect{Type: abi.EffectReplaceResult, Result: &abi.ToolResult{
		CallID: "other", Status: abi.ToolError, Data: fields{"n": 1}, Ticket: &abi.SuspendTicket{ID: "t"},
	}})), second)
	out := g.fire(t, f)
	want := &abi.ToolResult{CallID: "call_1", ToolName: "read_file", Status: abi.ToolError, Content: text(`{"n":1}!`)}
	if !reflect.DeepEqual(out.Result, want) {
		t.Errorf("result %+v", out.Result)
	}
	if m := out.Messages[len(out.Messages)-1]; m.Text() != `{"n":1}!` || len(out.Edits) != 2 {
		t.Errorf("message %+v, edits %+v", m, out.Edits)
	}
	if e := second.Events()[1]; e.Result.Status != abi.ToolError || e.Result.CallID != "call_1" {
		t.Errorf("event %+v", e.Result)
	}
	if recs := g.Of("b"); len(recs) != 2 || recs[0].Deferred != `message "m3" was changed by "a"` {
		t.Errorf("records %+v", recs)
	}
}

func TestReplaceResultRefused(t *testing.T) {
	t.Parallel()
	with := func(r *abi.ToolResult) abi.Effect { return abi.Effect{Type: abi.EffectReplaceResult, Result: r} }
	f := phasestest.Frame(abi.AfterToolExecute)
	refusedFor(t, f, with(nil), abi.ModeTransform, "result is missing")
	refusedFor(t, f, with(&abi.ToolResult{Status: abi.ToolPending}), abi.ModeTransform, "cannot be suspended")
	refusedFor(t, f, with(&abi.ToolResult{Status: "fine"}), abi.ModeTransform, `status "fine"`)
	refusedFor(t, f, with(&abi.ToolResult{Status: abi.ToolSuccess, Content: []abi.ContentBlock{{Type: abi.BlockThinking}}}), abi.ModeTransform, "thinking")
	refusedFor(t, phasestest.Frame(abi.ToolGate), with(&abi.ToolResult{Status: abi.ToolSuccess}), abi.ModeTransform, "only at after_tool_execute")
	pinned := result("m3", "call_1")
	pinned.Pinned = true
	f.Messages = append(f.Messages, pinned)
	refusedFor(t, f, with(&abi.ToolResult{Status: abi.ToolSuccess}), abi.ModeTransform, "is pinned")
}

// A notification is bounded in size and number, those that wait included.
func TestNotify(t *testing.T) {
	t.Parallel()
	tell := abi.Effect{Type: abi.EffectNotify, EventType: "found", Payload: fields{"n": 1}}
	h := abi.Hook{Phase: abi.StepEnd, Mode: abi.ModeObserve}
	cfg := phases.Config{Limits: phases.Limits{Notifications: 3, ActionBytes: 100}}
	g := build(t, cfg, plug("a", h, effects(tell)), plug("b", h, effects(tell, tell)), plug("c", h, effects(tell)))
	f := step(1)
	f.Phase, f.Waiting = abi.StepEnd, 1
	out := g.fire(t, f)
	want := abi.Notice{Kind: abi.NoticeCustom, TaskID: "plugin/a", EventType: "found", Payload: fields{"n": int64(1)}, Housekeeping: true}
	if len(out.Notifications) != 2 || !reflect.DeepEqual(out.Notifications[0], want) || out.Notifications[1].TaskID != "plugin/c" {
		t.Errorf("notifications %+v", out.Notifications)
	}
	if rec := g.only(t, "b"); len(rec.Refused) != 1 || !strings.Contains(rec.Refused[0].Reason, "3 notifications of plugins wait") {
		t.Errorf("record %+v", rec)
	}
	refusedFor(t, f, abi.Effect{Type: abi.EffectNotify}, abi.ModeObserve, "event_type is missing")
	g = build(t, cfg, plug("a", h, effects(abi.Effect{Type: abi.EffectNotify, EventType: "x", Payload: strings.Repeat("x", 200)})))
	if out := g.fire(t, f); len(out.Notifications) != 0 || !strings.Contains(g.only(t, "a").Refused[0].Reason, "larger than the 100 bytes") {
		t.Errorf("record %+v", g.Records())
	}
}

// Tools that there are not are noted; if none of them is known, the effect can do nothing.
func TestFilterOfUnknownTools(t *testing.T) {
	t.Parallel()
	f := step(1)
	f.HasTool = func(name string) bool { return name == "read" }
	exclude := func(tools ...string) abi.Effect {
		return abi.Effect{Type: abi.EffectExcludeTools, Tools: tools, Note: "why"}
	}
	include := abi.Effect{Type: abi.EffectIncludeTools, Tools: []string{"nope", "read"}}
	g := build(t, phases.Config{}, plug("a", at(f.Phase), effects(exclude("read", "wrte"))), plug("b", at(f.Phase), effects(exclude("none", "nope"))),
		plug("c", at(f.Phase), effects(include)), plug("d", at(f.Phase), effects(abi.Effect{Type: abi.EffectIncludeTools})))
	out := g.fire(t, f)
	if got := g.only(t, "a").Applied[0]; got.Note != "why; no such tool: wrte" || got.Target != "read,wrte" {
		t.Errorf("change %+v", got)
	}
	if got := g.only(t, "b").Refused; len(got) != 1 || got[0].Reason != "no such tool: none,nope" {
		t.Errorf("refused %+v", got)
	}
	if got := g.only(t, "c").Applied[0].Note; got != "no such tool: nope" {
		t.Errorf("note %q", got)
	}
	if len(g.only(t, "d").Refused) != 0 || len(out.IncludeTools) != 2 || !slices.Equal(out.ExcludeTools, []string{"read", "wrte"}) {
		t.Errorf("outcome %+v", out)
	}
}

// The request is made only when a hook asks for it, once, and with the system prompt only
// for those that ask for that.
func TestRequestForThoseThatAsk(t *testing.T) {
	t.Parallel()
	made := 0
	f := step(1)
	f.Request = func() *abi.InferenceRequest {
		made++
		return &abi.InferenceRequest{Model: "m", System: "secret", Tools: []abi.Tool{{Name: "read"}}}
	}
	plain := plug("a", at(f.Phase), silent)
	build(t, phases.Config{}, plain).fire(t, f)
	if made != 0 || plain.Events()[0].Request != nil {
		t.Errorf("made %d times for a hook that does not ask", made)
	}
	plain = plug("a", at(f.Phase), silent)
	asks := plug("b", abi.Hook{Phase: f.Phase, Include: []string{abi.IncludeRequest}}, silent)
	system := plug("c", abi.Hook{Phase: f.Phase, Include: []string{abi.IncludeRequest, abi.IncludeSystem}}, silent)
	build(t, phases.Config{}, plain, asks, system).fire(t, f)
	if made != 1 || plain.Events()[0].Request != nil {
		t.Errorf("made %d times", made)
	}
	if r := asks.Events()[0].Request; r == nil || r.System != "" || r.Model != "m" || len(r.Tools) != 1 {
		t.Errorf("request %+v", r)
	}
	if r := system.Events()[0].Request; r == nil || r.System != "secret" {
		t.Errorf("request %+v", r)
	}
}

func TestIncludeIsChecked(t *testing.T) {
	t.Parallel()
	for include, want := range map[string]string{"tools": `include "tools" is not one of request, system`, "request": "is for before_inference"} {
		_, err := phases.New(phases.Config{Plugins: []phases.Plugin{plug("p", abi.Hook{Phase: abi.StepEnd, Include: []string{include}}, silent)}})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

// judge is a hook at the gate that answers by the arguments of the call.
func judge(name string, answer func(arguments any) *abi.Reply) *phasestest.Scripted {
	return plug(name, abi.Hook{Phase: abi.ToolGate, Mode: abi.ModeGate}, func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		return answer(e.Call.Arguments), nil
	})
}

// A recheck asks the gates alone, and takes their decisions alone.
func TestRecheck(t *testing.T) {
	t.Parallel()
	bad := fields{"path": "/"}
	guard := judge("guard", func(arguments any) *abi.Reply {
		reply := &abi.Reply{
			Updates: []abi.Update{{Key: "comm", Op: abi.OpAdd, Value: 1}}, Effects: []abi.Effect{{Type: abi.EffectEmit, EventType: "seen"}, {Type: abi.EffectNotify, EventType: "x"}},
		}
		if reflect.DeepEqual(arguments, bad) {
			reply.Gate = &abi.GateDecision{Action: abi.GateBlock, Reason: "not there"}
		}
		return reply
	})
	other := plug("other", at(abi.ToolGate), effects(rewrite(bad)))
	g := build(t, phases.Config{}, guard, other)
	f := phasestest.Frame(abi.ToolGate)
	out := g.fire(t, f)
	if out.Gate != nil || out.Rewrite == nil {
		t.Fatalf("outcome %+v", out)
	}
	call := *f.Call
	call.Arguments = out.Rewrite.Arguments
	f.Call, f.RewrittenBy = &call, out.Rewrite.By
	out, err := g.Recheck(t.Context(), g.state, f)
	if err != nil || out.Gate == nil || out.Gate.Decision.Reason != "not there" || out.Gate.By != "guard" {
		t.Errorf("outcome %+v, error %v", out, err)
	}
	if len(out.Emitted)+len(out.Notifications) != 0 || out.Rewrite != nil || len(other.Events()) != 1 {
		t.Errorf("outcome %+v", out)
	}
	g.wantState(t, "guard/comm", int64(1))
	if recs := g.Of("guard"); len(recs) != 2 || recs[0].Recheck || !recs[1].Recheck || len(recs[1].Applied) != 0 {
		t.Errorf("records %+v", recs)
	}
	if e := guard.Events()[1]; !slices.Equal(e.RewrittenBy, []string{"other"}) {
		t.Errorf("event %+v", e)
	}
}

// A gate that fails in a recheck, or that disagrees in another way than by a decision,
// blocks. It would be a hole to take its dropped reply for consent.
func TestRecheckFailsClosed(t *testing.T) {
	t.Parallel()
	set := &abi.GateDecision{Action: abi.GateSetResult, Result: &abi.ToolResult{Status: abi.ToolSuccess}}
	tests := map[string]struct {
		answer phasestest.Answer
		by     string
		want   string
	}{
		"error":           {phasestest.Fail(errBroken), "a", "plugin p failed: broken"},
		"refused":         {effects(abi.Effect{Type: "nonsense"}), "a", "is not known"},
		"stop":            {effects(abi.Effect{Type: abi.EffectStop, Code: "no"}), "a", "asks to stop the run: no"},
		"stop and result": {phasestest.Reply(abi.Reply{Gate: set, Effects: []abi.Effect{{Type: abi.EffectStop, Code: "no"}}}), "a", "asks to stop the run: no"},
		"rewrite":         {effects(rewrite(fields{"path": "x"})), "a", "would rewrite the call again"},
		"same rewrite":    {effects(rewrite(fields{"path": "go.mod"})), "a", ""},
		"own rewrite":     {effects(rewrite(fields{"path": "x"})), "p", ""},
		"nothing":         {silent, "a", ""},
	}
	for name, test := range tests {
		g := build(t, phases.Config{}, plug("p", abi.Hook{Phase: abi.ToolGate, Mode: abi.ModeGate}, test.answer))
		f := phasestest.Frame(abi.ToolGate)
		f.RewrittenBy = []string{"p", test.by}
		out, err := g.Recheck(t.Context(), g.state, f)
		switch {
		case err != nil:
			t.Errorf("%s: %v", name, err)
		case test.want == "" && out.Gate != nil:
			t.Errorf("%s: decision %+v", name, out.Gate)
		case test.want != "" && (out.Gate == nil || out.Gate.Decision.Action != abi.GateBlock || !strings.Contains(out.Gate.Decision.Reason, test.want)):
			t.Errorf("%s: decision %+v", name, out.Gate)
		}
	}
}

func TestCanRewrite(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		phase abi.Phase
		mode  abi.Mode
		want  bool
	}{
		{abi.ToolGate, abi.ModeObserve, false},
		{abi.ToolGate, abi.ModeTransform, true},
		{abi.BeforeToolExecute, abi.ModeGate, true},
		{abi.StepStart, abi.ModeGate, false},
	} {
		if got := build(t, phases.Config{}, plug("p", abi.Hook{Phase: test.phase, Mode: test.mode}, silent)).CanRewrite(); got != test.want {
			t.Errorf("%s %s: %t", test.phase, test.mode, got)
		}
	}
}
