package main

import (
	"encoding/json"
	"fmt"
	"strings"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

const toolName = "memo"

func onPhase(e *mortise.Event) (*mortise.Reply, error) {
	if e.Call == nil {
		return nil, nil
	}
	switch e.Phase {
	case mortise.ToolGate:
		return recall(e), nil
	case mortise.AfterToolExecute:
		return remember(e), nil
	default:
		return nil, nil
	}
}

// recall answers a call that was answered before.
func recall(e *mortise.Event) *mortise.Reply {
	if !remembers(e) {
		return nil
	}
	text, ok := load(e.State, e.Config, e.NowMS).find(keyOf(e.Call))
	if !ok {
		return nil
	}
	return &mortise.Reply{
		Updates: []mortise.Update{{Key: keyHits, Op: mortise.OpAdd, Value: int64(1)}},
		Gate: &mortise.GateDecision{
			Action: mortise.GateSetResult, Reason: "memo: the same call was answered before",
			Result: &mortise.ToolResult{Status: mortise.ToolSuccess, Content: []mortise.ContentBlock{mortise.Text(text)}},
		},
	}
}

// remember keeps what a read-only tool answered. Any other tool may have changed what was
// read, so everything is forgotten after it.
func remember(e *mortise.Event) *mortise.Reply {
	c := load(e.State, e.Config, e.NowMS)
	if !remembers(e) {
		if e.Call.Name == toolName || readOnly(e.Call.Kind) || c.drop(func(*record) bool { return true }) == 0 {
			return nil
		}
		return &mortise.Reply{Updates: []mortise.Update{c.update()}}
	}
	text, ok := textOf(e.Result)
	if !ok {
		return nil
	}
	r := record{tool: e.Call.Name, key: keyOf(e.Call), text: text, at: e.NowMS}
	if old, known := c.find(r.key); known && old == r.text {
		return nil // it was answered from here
	}
	c.put(r, int(mortise.IntOr(e.Config, "max_bytes", maxBytes)))
	return &mortise.Reply{Updates: []mortise.Update{c.update()}}
}

// remembers reports whether results of the event's call are kept: those of the tools in
// the config, or else of all that only read.
func remembers(e *mortise.Event) bool {
	names := mortise.StringsOr(e.Config, "tools", nil)
	if names == nil {
		return readOnly(e.Call.Kind)
	}
	for _, n := range names {
		if n == e.Call.Name {
			return true
		}
	}
	return false
}

func readOnly(k mortise.ToolKind) bool { return k == mortise.ToolRead || k == mortise.ToolSearch }

// keyOf is the same for calls of one tool with equal arguments.
func keyOf(c *mortise.ToolCall) string {
	arguments, err := json.Marshal(c.Arguments) // with sorted names
	if err != nil {
		return c.Name + " " + c.ID
	}
	return c.Name + " " + string(arguments)
}

// textOf returns a result that is text and nothing else.
func textOf(r *mortise.ToolResult) (string, bool) {
	if r == nil || r.Status != mortise.ToolSuccess || r.Data != nil {
		return "", false
	}
	if len(r.Content) == 0 {
		return r.Message, r.Message != ""
	}
	var b strings.Builder
	for _, block := range r.Content {
		if block.Type != mortise.BlockText {
			return "", false
		}
		b.WriteString(block.Text)
	}
	return b.String(), true
}

// callTool lists or forgets what is remembered.
func callTool(c *mortise.ToolRequest) (*mortise.ToolReply, error) {
	only := mortise.StringOr(c.Arguments, "tool", "")
	known := load(c.State, c.Config, c.NowMS)
	matches := func(r *record) bool { return only == "" || r.tool == only }
	if mortise.BoolOr(c.Arguments, "forget", false) {
		n := known.drop(matches)
		return &mortise.ToolReply{
			Status: mortise.ToolSuccess, Message: fmt.Sprintf("Forgot %d results.", n), Updates: []mortise.Update{known.update()},
			Effects: []mortise.Effect{{Type: mortise.EffectEmit, EventType: "memo.forgot", Payload: int64(n)}},
		}, nil
	}
	var b strings.Builder
	for i := range known.records {
		if r := &known.records[i]; matches(r) {
			fmt.Fprintf(&b, "%s (%d bytes, %d s ago)\n", r.key, len(r.text), (c.NowMS-r.at)/1000)
		}
	}
	if b.Len() == 0 {
		return &mortise.ToolReply{Status: mortise.ToolSuccess, Message: "Nothing is remembered. Known tools: " + strings.Join(known.tools(), ", ") + "."}, nil
	}
	return &mortise.ToolReply{Status: mortise.ToolSuccess, Message: b.String()}, nil
}
