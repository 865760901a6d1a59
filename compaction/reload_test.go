package compaction_test

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

type noSummary struct{}

func (noSummary) Summarize(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
	return nil, context.Canceled
}

// TestReload: after Reload a compactor has what another process wrote, and leaves a compaction to the process that has it under way.
func TestReload(t *testing.T) {
	t.Parallel()
	store := compaction.NewMemory()
	c, err := compaction.New(compaction.Config{
		Summarizer: noSummary{}, Store: store, Owner: "own",
		Spawn: func(context.Context, string, string, string, string, func(context.Context) error) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	if n := len(c.Markers("t")); n != 0 {
		t.Fatalf("%d markers", n)
	}
	state := compaction.State{Markers: []compaction.Marker{{ID: "m"}}, Total: 1}
	for i, owner := range []string{"", "other", "own"} {
		if owner != "" {
			state.InFlight = &compaction.InFlight{ID: "f", Owner: owner, DeadlineMS: time.Now().Add(time.Hour).UnixMilli()}
		}
		_, rev, err := store.Load("t")
		if err == nil {
			_, err = store.Swap("t", rev, state)
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Reload("t")
		if n := len(c.Markers("t")); n != 1 {
			t.Errorf("round %d: %d markers", i, n)
		}
		now, _, err := store.Load("t")
		if err != nil {
			t.Fatal(err)
		}
		if left := now.InFlight != nil; left != (owner == "other") {
			t.Errorf("round %d: the compaction of %q is under way: %v", i, owner, left)
		}
	}
}
