package state_test

import (
	"context"
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

// Two commits are made from one revision. They go together where the key says so.
func ExampleStore_Apply() {
	ctx := context.Background()
	s := state.New()
	if err := s.Install("budget",
		&state.Key{Name: "budget/tokens", Merge: abi.MergeCommutative},
		&state.Key{Name: "budget/owner"},
	); err != nil {
		fmt.Println(err)
		return
	}
	base := s.Snapshot().Revision()
	for _, who := range []string{"alice", "bob"} {
		_, err := s.Apply(ctx, state.Batch{Base: &base, Updates: []state.Update{
			{Key: "budget/tokens", Op: abi.OpAdd, Value: 100},
		}})
		fmt.Println(who, "adds:", err)
		_, err = s.Apply(ctx, state.Batch{Base: &base, Updates: []state.Update{
			{Key: "budget/owner", Op: abi.OpSet, Value: who},
		}})
		fmt.Println(who, "owns:", errors.Is(err, state.ErrConflict))
	}
	tokens, _ := s.Snapshot().Read("budget/tokens")
	fmt.Println(tokens)
	// Output:
	// alice adds: <nil>
	// alice owns: false
	// bob adds: <nil>
	// bob owns: true
	// 200
}

// What one agent does not know is kept for the next.
func ExampleStore_ExportThread() {
	s := state.New()
	s.RestoreThread(map[string]any{"absent/notes": "keep me"})
	fmt.Println(s.ExportThread())
	// Output: map[absent/notes:keep me]
}
