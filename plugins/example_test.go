package plugins_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/plugins"
)

// A guest answers a phase like any other plugin.
func ExampleLoad() {
	ctx := context.Background()
	h, err := host.New(host.Config{CacheDir: cacheDir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	set, err := plugins.Load(ctx, h, []plugins.Entry{{Module: host.Spec{Path: "../testdata/guests/guard.wasm"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close(ctx)
	reply, err := set.Plugins()[0].OnPhase(ctx, &abi.Event{
		Phase: abi.ToolGate,
		Call:  &abi.ToolCall{ID: "c1", Name: "bash", Arguments: map[string]any{"command": "cd /tmp && sudo rm -rf /"}},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(reply.Gate.Action)
	// Output: block
}

// A plugin that asks for it, and is granted it, keeps its memory for the phases of a run.
func ExamplePlugin_sticky() {
	ctx := context.Background()
	h, err := host.New(host.Config{CacheDir: cacheDir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	set, err := plugins.Load(ctx, h, []plugins.Entry{{Module: host.Spec{Path: "testdata/sticky.wasm", Grants: host.Grants{Sticky: true}}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close(ctx)
	for _, run := range []string{"a", "a", "b"} {
		reply, err := set.Plugins()[0].OnPhase(ctx, &abi.Event{
			Phase: abi.ToolGate, Run: abi.RunIdentity{ThreadID: "t", RunID: run}, Call: &abi.ToolCall{ID: "c", Name: "bash"},
		})
		if err != nil {
			fmt.Println(err)
			return
		}
		fmt.Println(run, reply.Gate.Reason)
	}
	// Output:
	// a call 1
	// a call 2
	// b call 1
}

// A plugin is swapped while runs use it. One that cannot take over is refused, and the
// one in use continues.
func ExampleSet_Swap() {
	ctx := context.Background()
	h, err := host.New(host.Config{CacheDir: cacheDir})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	set, err := plugins.Load(ctx, h, []plugins.Entry{{Module: host.Spec{Path: "testdata/json.wasm"}}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer set.Close(ctx)
	err = set.Swap(ctx, "json-guard", host.Spec{Path: "testdata/json.wasm"}, host.SwapOptions{})
	fmt.Println(err, set.Status()[0].Module.Generation)
	err = set.Swap(ctx, "json-guard", host.Spec{Path: "testdata/trap.wasm"}, host.SwapOptions{})
	fmt.Println(errors.Is(err, plugins.ErrShape), set.Status()[0].Module.Generation)
	// Output:
	// <nil> 2
	// true 2
}
