package compaction_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/compaction"
)

// TestUndoSticks: after an undo the same range is not compacted again at once, in this process and in the
// next, until the view has grown or one is requested.
func TestUndoSticks(t *testing.T) {
	t.Parallel()
	store := compaction.NewMemory()
	d := newDesk()
	open := func() *compaction.Compactor {
		return d.at(t, says("short"), func(cfg *compaction.Config) { cfg.Store = store })
	}
	c, log := open(), filler()
	swap := func() {
		t.Helper()
		if !c.Consider(t.Context(), thread, log) {
			t.Fatalf("not started: %+v", d.last(t))
		}
		consume(t, c, log, d.run())
		if d.last(t).Kind != compaction.EventSwapped {
			t.Fatalf("%+v", d.last(t))
		}
	}
	held := func(when string) {
		t.Helper()
		if c.Consider(t.Context(), thread, log) {
			t.Fatalf("%s: the same compaction was started again", when)
		}
	}
	swap()
	c.Undo(thread)
	held("at once")
	e := d.last(t)
	if e.Kind != compaction.EventAdmission || e.Decision.Reason != compaction.ReasonUndone || e.Decision.Allowed || !strings.Contains(e.Reason, "was undone; the next one starts at") {
		t.Errorf("decided %+v: %s", e.Decision, e.Reason)
	}
	told := len(d.kinds())
	log = append(log, user("little", words(50)))
	held("after a little more")
	if n := len(d.kinds()); n != told {
		t.Errorf("%d events more, of the same refusal", n-told)
	}
	c = open()
	held("in the next process")
	log = append(log, assistant("more", words(1200)), user("next", "go on"))
	swap()
	c.Undo(thread)
	held("after the second undo")
	c.Request(thread, "")
	swap()
	// What an undo outside of a compactor has written counts from the first look at it.
	state, rev, err := store.Load(thread)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := state.Undo(); !ok {
		t.Fatal("nothing was undone")
	}
	if _, err := store.Swap(thread, rev, state); err != nil {
		t.Fatal(err)
	}
	c = open()
	held("after an undo by another program")
	if state, _, _ := store.Load(thread); state.Undone == nil || state.Undone.ViewTokens == 0 {
		t.Errorf("kept %+v", state.Undone)
	}
}

// TestUndoAndAFullWindow: an undo does not hold back what a full window needs.
func TestUndoAndAFullWindow(t *testing.T) {
	t.Parallel()
	d := newDesk()
	c := d.at(t, says("short"), func(cfg *compaction.Config) { cfg.Policy.WindowTokens, cfg.Policy.ReserveTokens = 1921, 1 })
	log := filler()
	if !c.Consider(t.Context(), thread, log) {
		t.Fatalf("%+v", d.last(t))
	}
	consume(t, c, log, d.run())
	c.Undo(thread)
	if c.Consider(t.Context(), thread, log) {
		t.Fatal("started again at once")
	}
	log = append(log, user("more", words(100)))
	if !c.Consider(t.Context(), thread, log) {
		t.Errorf("held back with a full window: %+v", d.last(t))
	}
}
