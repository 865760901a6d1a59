package mailboxtest

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/store"
)

func dropCases() []testCase {
	return []testCase{
		{"drop_waits_for_the_end_of_the_lease", func(w *world) { w.dropHeld(Damage{}) }},
	}
}

// Damage is a way in which a thread can be damaged.
type Damage struct {
	Name string
	// Do damages a thread that is claimed.
	Do func(t *testing.T, store store.Store, k queue.State)
	// Claim is set if the holder of the claim, or the end of its lease, cannot be read any more.
	Claim bool
}

// TestDamage holds that damaged threads can be dropped when no process can hold them any more, and not before.
func TestDamage(t *testing.T, open func(t *testing.T) store.Store, list ...Damage) {
	t.Helper()
	for _, d := range list {
		t.Run(d.Name, func(t *testing.T) {
			t.Parallel()
			newWorld(t, open(t)).dropHeld(d)
		})
	}
}

// dropHeld drops a thread that is claimed, for the second time, and was damaged then, while its lease lasts and after that.
func (w *world) dropHeld(d Damage) {
	w.enqueue("bad", "d1")
	w.enqueue("bad", "d2")
	w.enqueue("good", "d3")
	w.settle(w.claim("bad"), queue.Retry)
	k := w.claim("bad")
	if d.Do != nil {
		d.Do(w.t, w.store, k)
		w.isDamaged(k)
	}
	w.refusesDrop(k, d.Claim)
	w.clock.Add(lease)
	w.refusesDrop(k, d.Claim)
	w.clock.Add(time.Millisecond)
	if d.Claim {
		w.refusesDrop(k, true)
		// Who holds it might have renewed it until then. Some stores go by a clock of their own.
		w.clock.Add(max(0, time.Since(w.clock.Now())) + 10*time.Minute + time.Second)
	}
	must(w.t, w.queue.Drop(w.ctx(), "bad"))
	w.isDropped(k)
	w.settle(w.claim("good"), queue.Ack)
}

// isDamaged checks that a thread was damaged: it, or its claim, cannot be read.
func (w *world) isDamaged(k queue.State) {
	w.t.Helper()
	if _, _, err := w.queue.Claim(w.ctx(), "bad", w.request()); err == nil {
		w.t.Fatal("the thread is well")
	}
}

// refusesDrop holds that the thread is not dropped, and that the refusal names the holder and the end of its lease, as far as they are known.
func (w *world) refusesDrop(k queue.State, unknown bool) {
	w.t.Helper()
	err := w.queue.Drop(w.ctx(), "bad")
	if !errors.Is(err, queue.ErrBusy) || !strings.Contains(err.Error(), "holds it until 20") {
		w.t.Fatalf("drop of a thread that is held: %v", err)
	}
	if whole := `"worker" holds it until ` + k.Claim.Until.Format(time.RFC3339) + "; interrupt it first, or wait"; !unknown && !strings.Contains(err.Error(), whole) {
		w.t.Errorf("the refusal is %q, want %q in it", err, whole)
	}
}

// isDropped holds that a thread is gone but for its fence, that its last holder can do nothing to it, and that its name can be used.
func (w *world) isDropped(k queue.State) {
	w.t.Helper()
	same(w.t, "threads", w.threads(queue.ThreadQuery{}), "good")
	same(w.t, "dispatches", w.list(queue.DispatchQuery{}), "d3")
	h := w.record("bad")
	if h.Fence < k.Claim.Fence {
		w.t.Errorf("the fence of the dropped thread is %d, and was %d", h.Fence, k.Claim.Fence)
	}
	h.Fence = 0
	equal(w.t, "record", h, queue.Thread{ID: "bad"})
	w.isFenced(k)
	w.enqueue("bad", "d4")
	w.isFenced(k)
	next := w.claim("bad")
	if next.Claim.Fence <= k.Claim.Fence {
		w.t.Errorf("the fence is %d, and was %d", next.Claim.Fence, k.Claim.Fence)
	}
	w.isFenced(k)
	w.settle(next, queue.Ack)
}

// isFenced holds that who has lost a claim can write nothing.
func (w *world) isFenced(k queue.State) {
	w.t.Helper()
	_, extend := w.queue.Extend(w.ctx(), hold(k), lease)
	_, settle := w.queue.Settle(w.ctx(), hold(k), queue.Settlement{Verdict: queue.Ack})
	commit := w.queue.Commit(w.ctx(), hold(k), queue.Commit{ID: w.id("c"), Image: []byte("late")})
	for what, err := range map[string]error{"renewal": extend, "settlement": settle, "commit": commit} {
		if !errors.Is(err, queue.ErrConflict) && !errors.Is(err, queue.ErrNotFound) {
			w.t.Errorf("%s by who has lost the thread: %v", what, err)
		}
	}
}
