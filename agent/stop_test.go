package agent_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
)

// chatter is a model that calls a tool for ever.
type chatter struct {
	asked  int
	answer func(n int) abi.Message
}

func (c *chatter) Infer(context.Context, llm.Request) (*abi.Response, error) {
	c.asked++
	return &abi.Response{Model: "m", Message: c.answer(c.asked), Usage: &abi.Usage{PromptTokens: 90, CompletionTokens: 10}}, nil
}

func endless(n int) abi.Message {
	return says(fmt.Sprint("say ", n), calls("c", "echo", fmt.Sprint(n)))
}

func TestStopPolicies(t *testing.T) {
	t.Parallel()
	again := func(int) abi.Message { return says("again", calls("c", "echo", "same")) }
	for name, c := range map[string]struct {
		policy agent.StopPolicy
		answer func(int) abi.Message
		asked  int
		ran    int
		fail   bool
	}{
		"max_rounds":         {agent.StopPolicy{Type: agent.StopMaxRounds, Rounds: 3}, endless, 3, 3, false},
		"token_budget":       {agent.StopPolicy{Type: agent.StopTokens, MaxTotal: 300}, endless, 3, 2, false},
		"cost_budget":        {agent.StopPolicy{Type: agent.StopCost, MaxCost: 0.35}, endless, 4, 3, false},
		"consecutive_errors": {agent.StopPolicy{Type: agent.StopErrors, Max: 2}, endless, 2, 2, true},
		"stop_on_tool":       {agent.StopPolicy{Type: agent.StopOnTool, ToolName: "echo"}, endless, 1, 1, false},
		"content_match":      {agent.StopPolicy{Type: agent.StopContent, Pattern: "say [34]"}, endless, 3, 2, false},
		"loop_detection":     {agent.StopPolicy{Type: agent.StopLoop, Window: 3}, again, 3, 2, false},
		"timeout":            {agent.StopPolicy{Type: agent.StopTimeout, Seconds: 25}, endless, 4, 3, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				model := &chatter{answer: func(n int) abi.Message {
					<-time.After(10 * time.Second)
					return c.answer(n)
				}}
				if name != "timeout" {
					model.answer = c.answer
				} else {
					c.asked, c.ran = 3, 2
				}
				b := newBench(t, nil, agent.Config{
					Profile: agent.Profile{Model: model}, Limits: agent.Limits{MaxRounds: 10, Stop: []agent.StopPolicy{c.policy}},
					Inference: agent.Inference{Cost: func(_ string, u abi.Usage) float64 { return float64(u.PromptTokens+u.CompletionTokens) / 1000 }},
				})
				if c.fail {
					b.tools.do = func(context.Context, abi.ToolCall) (abi.ToolResult, error) { return abi.ToolResult{}, errors.New("no") }
				}
				r := mustRun(t, b, request(user("go")))
				if r.Termination.Type != agent.Stopped || r.Termination.Code != name || r.StatusReason != "stopped:"+name || model.asked != c.asked || len(b.tools.calls) != c.ran {
					t.Errorf("%+v after %d inferences and %d calls", r, model.asked, len(b.tools.calls))
				}
				if last := c.answer(c.asked); r.Response != last.Text() {
					t.Errorf("what was paid for is not in the thread: %q", r.Response)
				}
			})
		})
	}
}

func TestLoopDetectionGoesByArguments(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: &chatter{answer: endless}}, Limits: agent.Limits{MaxRounds: 6, Stop: []agent.StopPolicy{{Type: agent.StopLoop, Window: 2}}}})
	if r := mustRun(t, b, request(user("go"))); r.Termination.Code != string(agent.StopMaxRounds) {
		t.Errorf("stopped by %+v", r.Termination)
	}
}

// TestFailuresInARow: a call that succeeds ends the row.
func TestFailuresInARow(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: &chatter{answer: endless}}, Limits: agent.Limits{MaxRounds: 6, Stop: []agent.StopPolicy{{Type: agent.StopErrors, Max: 2}}}})
	n := 0
	b.tools.do = func(context.Context, abi.ToolCall) (abi.ToolResult, error) {
		n++
		if n%2 == 0 {
			return abi.ToolResult{}, nil
		}
		return abi.ToolResult{}, errors.New("no")
	}
	if r := mustRun(t, b, request(user("go"))); r.Termination.Code != string(agent.StopMaxRounds) {
		t.Errorf("stopped by %+v", r.Termination)
	}
}

// TestLimitsCountAcrossContinuations: a run that waits and continues does not begin its
// count again, in the same process or in another.
func TestLimitsCountAcrossContinuations(t *testing.T) {
	t.Parallel()
	store := agent.NewMemory()
	model := &chatter{answer: func(int) abi.Message { return says("", calls("c", "shell", "x")) }}
	var last agent.Result
	for n := range 3 {
		b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: model}, Limits: agent.Limits{MaxRounds: 3}, Checkpoints: store}, asking("")) // another process
		req := decide("c", agent.ActionResume, nil)
		if n == 0 {
			req = request(user("go"))
		}
		last = mustRun(t, b, req)
		if last.Steps != n+1 || last.Usage.PromptTokens != int64(90*(n+1)) || last.Status != agent.StatusWaiting {
			t.Fatalf("activation %d: %+v", n, last)
		}
	}
	b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: model}, Limits: agent.Limits{MaxRounds: 3}, Checkpoints: store}, asking(""))
	r := mustRun(t, b, decide("c", agent.ActionResume, nil))
	if r.Termination.Code != string(agent.StopMaxRounds) || r.RunID != last.RunID || model.asked != 3 {
		t.Errorf("result %+v after %d inferences", r, model.asked)
	}
}

func TestStopPoliciesAreChecked(t *testing.T) {
	t.Parallel()
	for _, p := range []agent.StopPolicy{
		{Type: agent.StopMaxRounds},
		{Type: agent.StopTimeout, Seconds: -1},
		{Type: agent.StopTokens},
		{Type: agent.StopCost},
		{Type: agent.StopErrors},
		{Type: agent.StopOnTool},
		{Type: agent.StopContent},
		{Type: agent.StopContent, Pattern: "("},
		{Type: agent.StopLoop, Window: 1},
		{Type: agent.StopLoop, Window: 1 << 30},
		{Type: "odd"},
	} {
		_, err := agent.New(agent.Config{Profile: agent.Profile{Model: &chatter{}, Phases: mustPhases(t)}, Limits: agent.Limits{Stop: []agent.StopPolicy{p}}})
		if err == nil || !strings.Contains(err.Error(), "Config.Stop[0]") {
			t.Errorf("%+v: error %v", p, err)
		}
	}
}

// A negative limit is none.
func TestNoMaxRounds(t *testing.T) {
	t.Parallel()
	model := &chatter{answer: func(n int) abi.Message {
		if n == 40 {
			return says("enough")
		}
		return endless(n)
	}}
	b := newBench(t, nil, agent.Config{Profile: agent.Profile{Model: model}, Limits: agent.Limits{MaxRounds: -1}})
	if r := mustRun(t, b, request(user("go"))); r.Termination.Type != agent.NaturalEnd || r.Steps != 40 {
		t.Errorf("result %+v", r)
	}
	model = &chatter{answer: endless}
	b = newBench(t, nil, agent.Config{Profile: agent.Profile{Model: model}})
	if r := mustRun(t, b, request(user("go"))); r.Termination.Code != "max_rounds" || r.Steps != 16 {
		t.Errorf("by default: %+v", r)
	}
}
