package bundled_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
	"github.com/mortise-dev/mortise/plugins/bundled"
)

// A program that embeds the host blocks dangerous commands without a module of its own.
func ExampleModule() {
	ctx := context.Background()
	h, err := host.New(host.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	guard, err := bundled.Module("guard")
	if err != nil {
		fmt.Println(err)
		return
	}
	set, err := plugins.Load(ctx, h, []plugins.Entry{{Module: guard}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close(ctx)
	r, err := phases.New(phases.Config{Plugins: set.Plugins()})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, command := range []string{"go test ./...", "sudo rm -rf /"} {
		call := abi.ToolCall{ID: "1", Name: "bash", Kind: abi.ToolExecute, Arguments: map[string]any{"command": command}}
		out, err := r.Fire(ctx, r.NewState(nil), phases.Frame{Phase: abi.ToolGate, Step: 1, Call: &call})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(command, "is blocked:", out.Gate != nil)
	}
	// Output:
	// go test ./... is blocked: false
	// sudo rm -rf / is blocked: true
}
