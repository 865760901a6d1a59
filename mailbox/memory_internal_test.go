package mailbox

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store/memstore"
)

// TestMemory holds that what is remembered is bounded in number and size, and that neither bound counts for what this process has claimed.
func TestMemory(t *testing.T) {
	t.Parallel()
	var m memory
	large := &seen{last: &view{cells: map[cellID][]byte{{kindRequest, "d"}: make([]byte, rememberedBytes+1)}}}
	if m.keep("claimed", large, nowClaimed) {
		t.Error("a thread was claimed before its first claim")
	}
	if !m.keep("claimed", large, asBefore) {
		t.Error("a claim is forgotten")
	}
	for i := range 3 * rememberedThreads {
		m.keep(fmt.Sprint("t", i), new(seen), nowFree)
	}
	if n := len(m.of); n > rememberedThreads || n < rememberedThreads-1 || n != len(m.order) {
		t.Errorf("%d threads are remembered, %d in order, want %d", n, len(m.order), rememberedThreads)
	}
	if m.get("claimed") != large {
		t.Error("a thread that is claimed is forgotten")
	}
	if m.get("t0") != nil || m.get(fmt.Sprint("t", 3*rememberedThreads-1)) == nil {
		t.Error("not the latest ones are remembered")
	}
	m.keep("claimed", large, nowFree)
	if m.get("claimed") != nil {
		t.Error("a large thread that is not claimed any more is remembered")
	}
}

// TestMemory_lost holds that a thread whose lease was lost counts as claimed no more, once its holder has learned of that.
func TestMemory_lost(t *testing.T) {
	t.Parallel()
	mem, now := memstore.New(), time.Unix(1_800_000_000, 0)
	var of [2]*Mailbox
	for i := range of {
		var err error
		if of[i], err = New(t.Context(), Config{Store: mem, Lease: Lease{Skew: -1}, Now: func() time.Time { return now }}); err != nil {
			t.Fatal(err)
		}
	}
	one, other := of[0], of[1]
	s, err := one.Enqueue(t.Context(), entry{ID: "d", Request: Request{Thread: "t", NewRun: "r", MaxAttempts: 2}, Offer: &claimRequest{Token: "token", Owner: "one", Lease: time.Minute}})
	if err != nil || !one.memory.of["t"].claimed {
		t.Fatalf("%+v, %v", s, err)
	}
	now = now.Add(time.Hour)
	if _, ok, err := other.expire(t.Context(), "t"); err != nil || !ok {
		t.Fatal(ok, err)
	}
	if _, err := one.Settle(t.Context(), s.Hold(), settlement{Verdict: verdictRetry, Error: "late"}); !errors.Is(err, ErrConflict) {
		t.Errorf("a settlement after the lease is %v", err)
	}
	if one.memory.of["t"].claimed {
		t.Error("the thread is kept as a claimed one for ever")
	}
}
