package meter_test

import (
	"context"
	"fmt"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"

	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// countdownModule counts its argument down to zero:
//
//	(module (func (export "count") (param i32)
//	  (loop (br_if 0 (local.tee 0 (i32.sub (local.get 0) (i32.const 1)))))))
const countdownModule = "\x00asm\x01\x00\x00\x00" +
	"\x01\x05\x01\x60\x01\x7f\x00" +
	"\x03\x02\x01\x00" +
	"\x07\x09\x01\x05count\x00\x00" +
	"\x0a\x10\x01\x0e\x00\x03\x40\x20\x00\x41\x01\x6b\x22\x00\x0d\x00\x0b\x0b"

func ExampleRewrite() {
	m, err := wasm.Parse([]byte(countdownModule))
	if err != nil {
		fmt.Println(err)
		return
	}
	metered, err := meter.Rewrite(m, meter.Options{RefillModule: "host", RefillName: "refill"})
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	rt := wazero.NewRuntime(ctx)
	defer rt.Close(ctx)
	refill := func(context.Context, api.Module) { panic("out of fuel") }
	if _, err := rt.NewHostModuleBuilder("host").NewFunctionBuilder().WithFunc(refill).Export("refill").Instantiate(ctx); err != nil {
		fmt.Println(err)
		return
	}
	guest, err := rt.Instantiate(ctx, metered.Wasm)
	if err != nil {
		fmt.Println(err)
		return
	}
	counter, ok := guest.ExportedGlobal(metered.Counter).(api.MutableGlobal)
	if !ok {
		return
	}
	count := guest.ExportedFunction("count")
	// 2 units for the function and 6 for each round.
	counter.Set(1000)
	_, err = count.Call(ctx, 100)
	fmt.Println(1000-counter.Get(), err)
	_, err = count.Call(ctx, 100)
	fmt.Println(err != nil)
	// Output:
	// 602 <nil>
	// true
}
