package host_test

import (
	"context"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/host"
)

// answer is a module with one export, which returns zero:
//
//	(module (func (export "ping") (result i32) (i32.const 0)))
const answer = "\x00asm\x01\x00\x00\x00" +
	"\x01\x05\x01\x60\x00\x01\x7f" +
	"\x03\x02\x01\x00" +
	"\x07\x08\x01\x04ping\x00\x00" +
	"\x0a\x06\x01\x04\x00\x41\x00\x0b"

func ExampleHost_Load() {
	ctx := context.Background()
	h, err := host.New(host.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)

	m, err := h.Load(ctx, host.Spec{Name: "pinger", Wasm: []byte(answer), Require: []string{"ping"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	out, err := m.Call(ctx, "ping", []byte("hello"))
	fmt.Printf("%q %v\n", out, err)
	_, err = m.Call(ctx, "pong", nil)
	fmt.Println(err)
	// Output:
	// "" <nil>
	// host: module "pinger" export "pong": no such export
}

func ExampleInspect() {
	in, err := host.Inspect("pinger", []byte(answer))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(in.Kind, in.Exports[0].Name, in.Exports[0].Type, len(in.Problems))

	_, err = host.Inspect("page", []byte("<!doctype html>"))
	fmt.Println(err)
	// Output:
	// plugin ping () -> i32 0
	// host: module "page" is a page of HTML or XML, not WebAssembly; look at what was downloaded, and give the path of a .wasm binary
}

// A module that fails too often after a swap is rolled back by itself.
func ExampleModule_Swap() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	h, err := host.New(host.Config{OnSwap: func(e host.SwapEvent) {
		fmt.Printf("generation %d: %s, calls go to %d\n", e.Generation, e.Kind, e.Current)
	}})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)

	m, err := h.Load(ctx, host.Spec{Name: "policy", Path: "testdata/generation.wasm"})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, err = m.Swap(ctx, host.Spec{Path: "testdata/unreachable.wasm"}, host.SwapOptions{
		Check: func(ctx context.Context, g *host.Generation) error {
			_, err := g.Call(ctx, "ok", nil)
			return err
		},
		Watch: host.Watch{Calls: 100, MinCalls: 2, MaxFailures: 0.1},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	for range 2 {
		_, err := m.Call(ctx, "run", nil)
		fmt.Println(err != nil)
	}
	out, err := m.Call(ctx, "work", nil)
	fmt.Printf("%s %v\n", out, err)
	// Output:
	// generation 2: live, calls go to 2
	// true
	// generation 2: rolled_back, calls go to 1
	// true
	// 1 <nil>
}
