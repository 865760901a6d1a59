package summarizers_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/trial"
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
	// A binary that says the same of everything does not take over.
	report, err := policy.Swap(ctx, host.Spec{Path: "../internal/cli/testdata/fixed.wasm"}, summarizers.SwapOptions{})
	var refusal *trial.Refusal
	fmt.Println(errors.As(err, &refusal), report.OldSurvival > 0.3, report.NewSurvival, policy.Name())
	// Without the trial it does.
	_, err = policy.Swap(ctx, host.Spec{Path: "../internal/cli/testdata/fixed.wasm"}, summarizers.SwapOptions{Untried: true})
	fmt.Println(policy.Name(), err)
	// Output:
	// true true 0 summarizers
	// fixed <nil>
}
