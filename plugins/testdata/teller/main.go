// Command teller is a guest with tools, good ones and bad ones.
package main

import (
	"errors"
	"fmt"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/conversation"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func init() { //nolint:gochecknoinits // a guest registers before the host calls it
	plugin.Register(plugin.Plugin{Description: description(), OnPhase: onPhase, CallTool: callTool, Validate: validate})
}

func main() {}

func description() mortise.Description {
	numbers := map[string]any{
		"type": "object", "required": []any{"values"}, "additionalProperties": false,
		"properties": map[string]any{"values": map[string]any{"type": "array", "items": map[string]any{"type": "integer"}, "maxItems": int64(8)}},
	}
	return mortise.Description{
		Name: "teller", Version: "1.0.0", ABI: mortise.VersionRange{Min: 1, Max: 1},
		Hooks: []mortise.Hook{{Phase: mortise.RunStart, Mode: mortise.ModeObserve}},
		Tools: []mortise.Tool{
			{Name: "sum", Description: "Adds integers.", Kind: mortise.ToolRead, Parameters: numbers},
			{Name: "pay", Description: "Pays, when somebody says how much."},
			{Name: "break", Description: "Says no."},
			{Name: "trap", Description: "Breaks."},
			{Name: "lie", Description: "Answers what no tool may answer."},
			{Name: "note", Description: "Notes its argument, and returns what it knows of the run."},
			{Name: "overreach", Description: "Changes a key that it did not declare."},
		},
		State: []mortise.StateKey{{Name: "notes"}},
	}
}

// validate refuses what a schema could not: two fields that contradict each other.
func validate(config any) []mortise.Problem {
	fields, _ := config.(map[string]any)
	if fields["open"] == true && fields["closed"] == true {
		return []mortise.Problem{{Path: "/closed", Message: "is true beside open; choose one"}, {Message: "see the\nmanual"}}
	}
	return nil
}

func onPhase(*mortise.Event) (*mortise.Reply, error) { return nil, nil }

func callTool(c *mortise.ToolRequest) (*mortise.ToolReply, error) {
	switch c.Name {
	case "sum":
		return sum(c), nil
	case "pay":
		if c.Resume == nil {
			return &mortise.ToolReply{
				Status: mortise.ToolPending, Message: "how much?",
				Ticket: &mortise.SuspendTicket{ID: "pay_" + c.ID, Action: "confirm", Mode: mortise.ResumePassDecision},
			}, nil
		}
		return &mortise.ToolReply{Status: mortise.ToolSuccess, Message: fmt.Sprintf("paid %v with key %t", c.Resume.Result, c.IdempotencyKey != "")}, nil
	case "note":
		return note(c)
	case "overreach":
		return &mortise.ToolReply{
			Status: mortise.ToolSuccess, Message: "done", Updates: []mortise.Update{{Key: "others", Op: mortise.OpSet, Value: true}},
		}, nil
	case "trap":
		panic("the teller fell over")
	case "lie":
		return &mortise.ToolReply{
			Status: "wonderful", Content: []mortise.ContentBlock{{Type: mortise.BlockThinking, Text: "I was signed", Signature: "no"}},
		}, nil
	default:
		return nil, errors.New("not today")
	}
}

func note(c *mortise.ToolRequest) (*mortise.ToolReply, error) {
	had, _ := c.State["notes"].([]any)
	newest, _, err := conversation.Get(c.MessagesTotal-1, c.MessagesTotal)
	if err != nil {
		return nil, err
	}
	last := ""
	for _, m := range newest {
		last = m.Text()
	}
	return &mortise.ToolReply{
		Status: mortise.ToolSuccess,
		Data: map[string]any{
			"had": had, "run": c.Run.RunID, "thread": c.Run.ThreadID, "step": c.Step, "total": c.MessagesTotal, "last": last,
			"config": c.Config, "abi": c.ABI, "timed": c.NowMS > 0, "key": c.IdempotencyKey != "",
		},
		Updates: []mortise.Update{{Key: "notes", Op: mortise.OpSet, Value: append(had, c.Arguments)}},
		Effects: []mortise.Effect{{Type: mortise.EffectEmit, EventType: "noted", Payload: c.Arguments}},
	}, nil
}

func sum(c *mortise.ToolRequest) *mortise.ToolReply {
	arguments, _ := c.Arguments.(map[string]any)
	values, _ := arguments["values"].([]any)
	total := int64(0)
	for _, v := range values {
		n, _ := v.(int64)
		total += n
	}
	return &mortise.ToolReply{Status: mortise.ToolSuccess, Data: map[string]any{"total": total}}
}
