// Command hook is the guest of the benchmarks: a phase hook written with the SDK,
// and exports that do nothing, echo, or ordinary work.
package main

import (
	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/plugin"
)

func init() {
	plugin.Register(plugin.Plugin{
		Description: mortise.Description{
			Name: "bench-go", Version: "1.0.0",
			Hooks: []mortise.Hook{{Phase: mortise.BeforeInference, Mode: mortise.ModeTransform, Messages: mortise.ViewAll, LazyMessages: true}},
		},
		OnPhase: onPhase,
	})
}

func main() {}

// onPhase counts messages by role and finds the last one of the user.
func onPhase(e *mortise.Event) (*mortise.Reply, error) {
	var system, user, assistant, tool int64
	last := -1
	for i, m := range e.Messages {
		switch m.Role() {
		case mortise.RoleSystem:
			system++
		case mortise.RoleUser:
			user, last = user+1, i
		case mortise.RoleAssistant:
			assistant++
		case mortise.RoleTool:
			tool++
		}
	}
	id, size := "", 0
	if last >= 0 {
		id, size = e.Messages[last].ID(), len(e.Messages[last].Text())
	}
	return &mortise.Reply{Effects: []mortise.Effect{{
		Type: mortise.EffectEmit, EventType: "roles",
		Payload: mortise.Fields{
			{Key: "assistant", Value: assistant}, {Key: "last", Value: id}, {Key: "size", Value: size},
			{Key: "system", Value: system}, {Key: "tool", Value: tool}, {Key: "user", Value: user},
		},
	}}}, nil
}
