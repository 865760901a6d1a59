package main

import (
	"fmt"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

const msPerMinute = 60_000

func onPhase(e *mortise.Event) (*mortise.Reply, error) {
	switch e.Phase {
	case mortise.RunStart:
		return &mortise.Reply{Updates: []mortise.Update{{Key: keyStarted, Op: mortise.OpSet, Value: e.NowMS}}}, nil
	case mortise.AfterInference:
		return afterInference(e), nil
	case mortise.ToolGate:
		return toolGate(e), nil
	case mortise.RunEnd:
		return runEnd(e), nil
	default:
		return nil, nil
	}
}

// afterInference counts what the answer cost, and stops a run that is over its limits.
func afterInference(e *mortise.Event) *mortise.Reply {
	used := tokens(e.Response)
	run, thread := counted(e, keyTokens)+used, counted(e, keyThread)+used
	r := &mortise.Reply{Updates: []mortise.Update{add(keyTokens, used), add(keyThread, used)}}
	stop := func(code string, n, limit int64, what string) {
		if limit > 0 && n > limit && len(r.Effects) == 0 {
			r.Effects = []mortise.Effect{{
				Type: mortise.EffectStop, Code: code, Detail: fmt.Sprintf("%d %s, %d are allowed", n, what, limit),
			}}
		}
	}
	stop("budget_tokens", run, mortise.IntOr(e.Config, "max_tokens", 0), "tokens were used by the run")
	stop("budget_thread_tokens", thread, mortise.IntOr(e.Config, "max_thread_tokens", 0), "tokens were used by the thread")
	if started := counted(e, keyStarted); started > 0 {
		stop("budget_minutes", (e.NowMS-started)/msPerMinute, mortise.IntOr(e.Config, "max_minutes", 0), "minutes have passed")
	}
	return r
}

// toolGate counts the calls. One too many waits for a decision, or is blocked.
func toolGate(e *mortise.Event) *mortise.Reply {
	n, limit := counted(e, keyCalls)+1, mortise.IntOr(e.Config, "max_calls", 0)
	r := &mortise.Reply{Updates: []mortise.Update{add(keyCalls, 1)}}
	if limit <= 0 || n <= limit {
		return r
	}
	reason := fmt.Sprintf("budget: tool call %d of the run, %d are allowed", n, limit)
	if mortise.StringOr(e.Config, "on_calls", "suspend") == "block" {
		r.Gate = &mortise.GateDecision{Action: mortise.GateBlock, Reason: reason}
		return r
	}
	r.Gate = &mortise.GateDecision{Action: mortise.GateSuspend, Reason: reason, Ticket: &mortise.SuspendTicket{
		ID: "budget-" + e.Call.ID, Action: "raise_budget", Message: reason, Mode: mortise.ResumeReplay,
	}}
	return r
}

// runEnd tells listeners what the run used, and how it ended.
func runEnd(e *mortise.Event) *mortise.Reply {
	used := map[string]any{"tokens": counted(e, keyTokens), "calls": counted(e, keyCalls), "thread_tokens": counted(e, keyThread)}
	if e.End != nil {
		used["termination"], used["cost"] = string(e.End.Termination), e.End.Cost
	}
	return &mortise.Reply{Effects: []mortise.Effect{{Type: mortise.EffectEmit, EventType: "budget.used", Payload: used}}}
}

func add(key string, n int64) mortise.Update {
	return mortise.Update{Key: key, Op: mortise.OpAdd, Value: n}
}

func counted(e *mortise.Event, key string) int64 {
	n, _ := e.State[key].(int64)
	return n
}

// bytesPerToken is a cautious estimate, for an answer whose provider counted nothing.
const bytesPerToken = 3

// tokens is what an answer cost.
func tokens(r *mortise.Response) int64 {
	switch {
	case r == nil:
		return 0
	case r.Usage != nil && r.Usage.TotalTokens > 0:
		return r.Usage.TotalTokens
	case r.Usage != nil && r.Usage.PromptTokens+r.Usage.CompletionTokens > 0:
		return r.Usage.PromptTokens + r.Usage.CompletionTokens
	}
	n := int64(0)
	for _, b := range r.Message.Content {
		n += int64(len(b.Text))
	}
	return (n + bytesPerToken - 1) / bytesPerToken
}
