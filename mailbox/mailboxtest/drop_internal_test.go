package mailboxtest

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// damage is a way in which a thread can be damaged.
type damage struct {
	// cell, of a thread that is claimed, is replaced by what cannot be read.
	cell func(claimed mailbox.Dispatch) store.Cell
	// claim is set if the holder of the claim, or the end of its lease, cannot be read any more.
	claim bool
}

// TestDrop holds that a thread, also a damaged one, can be dropped when no process can hold it any more, and not before.
func TestDrop(t *testing.T) {
	t.Parallel()
	for name, d := range map[string]damage{
		"well":     {},
		"thread":   {claim: true, cell: func(mailbox.Dispatch) store.Cell { return store.Cell{Kind: "thread"} }},
		"dispatch": {cell: func(d mailbox.Dispatch) store.Cell { return store.Cell{Kind: "dispatch", Key: d.ID} }},
		"run":      {cell: func(d mailbox.Dispatch) store.Cell { return store.Cell{Kind: "run", Key: d.RunID} }},
		"queue":    {cell: func(mailbox.Dispatch) store.Cell { return store.Cell{Kind: "queue", Key: "\x80somewhere"} }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			newWorld(t, memstore.New()).dropHeld(d)
		})
	}
}

// dropHeld drops a thread that is claimed, for the second time, and was damaged then, while its lease lasts and after that.
func (w *world) dropHeld(d damage) {
	m := w.manual()
	x := m.begin("bad", "d1")
	m.queue("bad", "d2")
	m.finish(x, mailbox.Result{}, errors.New("a blip"))
	w.clock.Add(time.Second)
	x = m.poll()[0]
	m.queue("good", "d3")
	until := w.record("bad").Claim.Until
	if d.cell != nil {
		c := d.cell(x.Dispatch)
		c.Value = []byte("{damaged")
		_, err := w.store.Apply(w.ctx(), store.Batch{Thread: "bad", Base: store.AnyRevision, Put: []store.Cell{c}})
		must(w.t, err)
		if err := w.manual().Drop(w.ctx(), "bad"); err == nil {
			w.t.Fatal("the thread was dropped while it is held")
		}
		if _, err := w.manual().PauseThread(w.ctx(), "bad"); err == nil {
			w.t.Fatal("nothing is damaged: the thread can be changed")
		}
	}
	w.refusesDrop(until, d.claim)
	w.clock.Add(lease)
	w.refusesDrop(until, d.claim)
	w.clock.Add(time.Millisecond)
	if d.claim {
		w.refusesDrop(until, true)
		// Who holds it might have renewed it until then. Some stores go by a clock of their own.
		w.clock.Add(max(0, time.Since(w.clock.Now())) + 10*time.Minute + time.Second)
	}
	must(w.t, w.mail.Drop(w.ctx(), "bad"))
	w.isDropped(m, x)
}

// refusesDrop holds that the thread is not dropped, and that the refusal names the holder and the end of its lease, as far as they are known.
func (w *world) refusesDrop(until time.Time, unknown bool) {
	w.t.Helper()
	err := w.mail.Drop(w.ctx(), "bad")
	if !errors.Is(err, mailbox.ErrBusy) || !strings.Contains(err.Error(), "holds it until 20") {
		w.t.Fatalf("drop of a thread that is held: %v", err)
	}
	if whole := `"worker" holds it until ` + until.Format(time.RFC3339) + "; interrupt it first, or wait"; !unknown && !strings.Contains(err.Error(), whole) {
		w.t.Errorf("the refusal is %q, want %q in it", err, whole)
	}
}

// isDropped holds that a thread is gone but for its fence, that its last holder can do nothing to it, and that its name can be used.
func (w *world) isDropped(m *manual, x *hand) {
	w.t.Helper()
	same(w.t, "threads", w.threads(mailbox.ThreadQuery{}), "good")
	same(w.t, "dispatches", w.list(mailbox.DispatchQuery{}), "d3")
	h := w.record("bad")
	if h.Fence < x.Fence {
		w.t.Errorf("the fence of the dropped thread is %d, and was %d", h.Fence, x.Fence)
	}
	h.Fence = 0
	equal(w.t, "record", h, mailbox.Thread{ID: "bad"})
	w.isFenced(x)
	heir := w.manual()
	heir.queue("bad", "d4")
	w.isFenced(x)
	begun := heir.poll() // and that of the other thread
	next := begun[slices.IndexFunc(begun, func(x *hand) bool { return x.Dispatch.Thread == "bad" })]
	if next.Dispatch.ID != "d4" || next.Fence <= x.Fence {
		w.t.Errorf("the fence of %s is %d, and was %d", next.Dispatch.ID, next.Fence, x.Fence)
	}
	w.isFenced(x)
	m.finish(x, mailbox.Result{Response: "late"}, nil)
	equal(w.t, "claim", w.record("bad").Claim.Token, next.Dispatch.Token)
	equal(w.t, "status", heir.finish(next, mailbox.Result{}, nil).Status, mailbox.Acked)
}

// isFenced holds that an execution which has lost its claim can write nothing.
func (w *world) isFenced(x *hand) {
	w.t.Helper()
	if err := x.commit(mailbox.Commit{ID: w.id("c"), Image: []byte("late")}); !errors.Is(err, mailbox.ErrConflict) && !errors.Is(err, mailbox.ErrNotFound) {
		w.t.Errorf("commit by who has lost the thread: %v", err)
	}
}
