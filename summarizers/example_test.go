package summarizers_test

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/summarizers"
)

// The admission policy is a module: swapping it is loading another file.
func ExampleOpen() {
	ctx := context.Background()
	h, err := host.New(host.Config{CacheDir: cacheDir()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	m, err := h.Load(ctx, host.Spec{Path: "../testdata/guests/admission.wasm"})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := summarizers.Open(ctx, m, summarizers.Config{Use: summarizers.UseAdmit, Policy: "quota"})
	if err != nil {
		fmt.Println(err)
		return
	}
	tokens := int64(120_000)
	d, err := policy.Admit(ctx, &abi.AdmitRequest{TokensBefore: &tokens, AttemptCount: 2, MaxAttempts: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(d.Allowed, d.Reason)
	// Output: false session_attempt_limit
}

// A policy is swapped while compactions use it.
func ExamplePolicy_Swap() {
	ctx := context.Background()
	h, err := host.New(host.Config{CacheDir: cacheDir()})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer h.Close(ctx)
	m, err := h.Load(ctx, host.Spec{Path: "../testdata/guests/summarizers.wasm"})
	if err != nil {
		fmt.Println(err)
		return
	}
	policy, err := summarizers.Open(ctx, m, summarizers.Config{Use: summarizers.UseSummarize})
	if err != nil {
		fmt.Println(err)
		return
	}
	before := policy.Name()
	err = policy.Swap(ctx, host.Spec{Path: "../internal/cli/testdata/fixed.wasm"}, host.SwapOptions{})
	fmt.Println(before, "->", policy.Name(), err)
	// Output: summarizers -> fixed <nil>
}
