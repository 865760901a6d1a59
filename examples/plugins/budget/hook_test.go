package main

import (
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func answered(config any, state map[string]any, total int64) *mortise.Event {
	return &mortise.Event{
		Phase: mortise.AfterInference, NowMS: 10 * msPerMinute, Config: config, State: state,
		Response: &mortise.Response{Usage: &mortise.Usage{TotalTokens: total}},
	}
}

func TestStops(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		config, state map[string]any
		code          string
	}{
		"no limit":        {nil, nil, ""},
		"at the limit":    {map[string]any{"max_tokens": int64(100)}, map[string]any{keyTokens: int64(90)}, ""},
		"above it":        {map[string]any{"max_tokens": int64(100)}, map[string]any{keyTokens: int64(91)}, "budget_tokens"},
		"the thread's":    {map[string]any{"max_thread_tokens": int64(100)}, map[string]any{keyThread: int64(91)}, "budget_thread_tokens"},
		"in time":         {map[string]any{"max_minutes": int64(5)}, map[string]any{keyStarted: int64(5 * msPerMinute)}, ""},
		"too late":        {map[string]any{"max_minutes": int64(5)}, map[string]any{keyStarted: int64(4 * msPerMinute)}, "budget_minutes"},
		"no known start":  {map[string]any{"max_minutes": int64(5)}, nil, ""},
		"one code of two": {map[string]any{"max_tokens": int64(1), "max_thread_tokens": int64(1)}, nil, "budget_tokens"},
	} {
		r, err := onPhase(answered(c.config, c.state, 10))
		if err != nil {
			t.Fatal(err)
		}
		code := ""
		if len(r.Effects) > 0 {
			code = r.Effects[0].Code
		}
		if code != c.code || len(r.Effects) > 1 || len(r.Updates) != 2 || r.Updates[0].Value != int64(10) {
			t.Errorf("%s: %+v, want code %q", name, r, c.code)
		}
	}
}

func TestEstimatesWhatWasNotCounted(t *testing.T) {
	t.Parallel()
	for want, r := range map[int64]*mortise.Response{
		0: nil,
		4: {Message: mortise.Message{Content: []mortise.ContentBlock{mortise.Text("ten bytes!")}}},
		7: {Usage: &mortise.Usage{PromptTokens: 5, CompletionTokens: 2}},
	} {
		if got := tokens(r); got != want {
			t.Errorf("%d tokens, want %d", got, want)
		}
	}
}

func TestCalls(t *testing.T) {
	t.Parallel()
	gate := func(on string, before int64) *mortise.Reply {
		r, err := onPhase(&mortise.Event{
			Phase: mortise.ToolGate, Call: &mortise.ToolCall{ID: "c1", Name: "ls"}, State: map[string]any{keyCalls: before},
			Config: map[string]any{"max_calls": int64(3), "on_calls": on},
		})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := gate("suspend", 2); r.Gate != nil || r.Updates[0].Value != int64(1) {
		t.Errorf("%+v", r)
	}
	if r := gate("suspend", 3); r.Gate == nil || r.Gate.Action != mortise.GateSuspend || r.Gate.Ticket.ID != "budget-c1" {
		t.Errorf("%+v", r)
	}
	if r := gate("block", 3); r.Gate == nil || r.Gate.Action != mortise.GateBlock || !strings.Contains(r.Gate.Reason, "call 4 of the run, 3 are allowed") {
		t.Errorf("%+v", r)
	}
}

func TestTellsWhatWasUsed(t *testing.T) {
	t.Parallel()
	r, err := onPhase(&mortise.Event{
		Phase: mortise.RunEnd, State: map[string]any{keyTokens: int64(5), keyCalls: int64(2)},
		End: &mortise.RunEnding{Termination: mortise.TerminationStopped, Cost: 0.25},
	})
	if err != nil {
		t.Fatal(err)
	}
	used, _ := r.Effects[0].Payload.(map[string]any)
	if r.Effects[0].EventType != "budget.used" || used["tokens"] != int64(5) || used["calls"] != int64(2) || used["termination"] != "stopped" || used["cost"] != 0.25 {
		t.Errorf("%+v", r.Effects)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	for wrong, config := range map[bool]map[string]any{
		true:  {"max_tokens": int64(10), "max_thread_tokens": int64(5)},
		false: {"max_tokens": int64(5), "max_thread_tokens": int64(5)},
	} {
		in, err := mortise.Marshal(&mortise.ValidateRequest{ABI: 1, Config: config})
		if err != nil {
			t.Fatal(err)
		}
		out, err := plugin.Call(mortise.ExportValidate, in)
		if err != nil {
			t.Fatal(err)
		}
		var found mortise.Validation
		if err := mortise.Unmarshal(out, &found); err != nil {
			t.Fatal(err)
		}
		if (len(found.Problems) == 1 && found.Problems[0].Path == "/max_tokens") != wrong {
			t.Errorf("%v: %+v", config, found)
		}
	}
}
