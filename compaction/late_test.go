package compaction_test

import (
	"context"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

func TestLateAndForeignResults(t *testing.T) {
	t.Parallel()
	ready := func(t *testing.T) (*desk, *compaction.Compactor, []abi.Message, []abi.Notice) {
		t.Helper()
		d := newDesk()
		c := d.at(t, says("short"), nil)
		log := filler()
		if !c.Consider(t.Context(), thread, log) {
			t.Fatal("not started")
		}
		notices := d.run()
		return d, c, log, notices
	}
	t.Run("twice", func(t *testing.T) {
		t.Parallel()
		d, c, log, notices := ready(t)
		consume(t, c, log, []abi.Notice{notices[0], notices[0]})
		if c.Total(thread) != 1 || len(c.Markers(thread)) != 1 {
			t.Errorf("%d swaps", c.Total(thread))
		}
		if e := d.last(t); e.Kind != compaction.EventSwapped {
			t.Errorf("told %+v", e)
		}
	})
	t.Run("whose notice is lost", func(t *testing.T) {
		t.Parallel()
		d, c, log, notices := ready(t)
		d.pass(2 * time.Minute)
		c.Consider(t.Context(), thread, log)
		if c.Total(thread) != 0 {
			t.Fatal("not waited for")
		}
		d.pass(time.Millisecond)
		if view := c.View(thread, log); len(view) != 2 || c.Total(thread) != 1 || c.Pending(thread) {
			t.Fatalf("a good summary was thrown away: %v, %+v", ids(view), d.last(t))
		}
		// When the notice comes after all, it changes nothing.
		consume(t, c, log, notices)
		if e := d.last(t); e.Kind != compaction.EventSwapped || c.Total(thread) != 1 {
			t.Errorf("told %+v", e)
		}
	})
	t.Run("of the attempt before", func(t *testing.T) {
		t.Parallel()
		d, c, log, notices := ready(t)
		consume(t, c, log, notices[:1])
		c.Undo(thread)
		c.Request(thread, "") // an undo holds the next one back
		if !c.Consider(t.Context(), thread, log) {
			t.Fatal("not started again")
		}
		consume(t, c, log, notices[:1])
		if !c.Pending(thread) || c.Total(thread) != 1 {
			t.Error("a stale result was taken")
		}
		consume(t, c, log, d.run())
		if c.Total(thread) != 2 {
			t.Error("the right result was not taken")
		}
	})
	t.Run("that was collected late is waited for", func(t *testing.T) {
		t.Parallel()
		d, c, log, notices := ready(t)
		d.pass(7 * time.Minute)
		c.Consider(t.Context(), thread, log)
		consume(t, c, log, notices)
		if c.Total(thread) != 1 {
			t.Errorf("a good summary was thrown away: %+v", d.last(t))
		}
	})
	t.Run("late, but before anybody asked", func(t *testing.T) {
		t.Parallel()
		d, c, log, notices := ready(t)
		d.pass(time.Hour)
		consume(t, c, log, notices)
		if c.Total(thread) != 1 {
			t.Error("a good summary was thrown away")
		}
	})
	t.Run("of another task", func(t *testing.T) {
		t.Parallel()
		_, c, log, notices := ready(t)
		foreign := notices[0]
		foreign.TaskID = "somebody"
		if c.Consume(thread, log, foreign) || !c.Pending(thread) {
			t.Error("a stranger ended the compaction")
		}
		consume(t, c, log, notices)
		if c.Total(thread) != 1 {
			t.Error("the right result was not taken")
		}
	})
	t.Run("of another thread", func(t *testing.T) {
		t.Parallel()
		_, c, log, notices := ready(t)
		if c.Consume("thread-2", log, notices[0]) || c.Total("thread-2") != 0 || !c.Pending(thread) {
			t.Error("a result was taken by the wrong thread")
		}
	})
	t.Run("after an undo", func(t *testing.T) {
		t.Parallel()
		d, c, log, notices := ready(t)
		consume(t, c, log, notices)
		log = append(log, assistant("more", words(1500)), user("next", "go on"))
		if !c.Consider(t.Context(), thread, log) || !c.Undo(thread) {
			t.Fatal("not started, or not undone")
		}
		consume(t, c, log, d.run())
		if e := d.last(t); e.Kind != compaction.EventRefused || !strings.Contains(e.Reason, "undone meanwhile") {
			t.Errorf("told %+v", e)
		}
		if !reflect.DeepEqual(c.View(thread, log), log) {
			t.Error("the view was changed")
		}
		// It was no failure: the next one may start, when it is asked for.
		c.Request(thread, "")
		if !c.Consider(t.Context(), thread, log) {
			t.Errorf("decided %+v", d.last(t).Decision)
		}
	})
	t.Run("for another log", func(t *testing.T) {
		t.Parallel()
		d, c, _, notices := ready(t)
		other := []abi.Message{user("z", "x")}
		consume(t, c, other, notices[:1])
		if e := d.last(t); e.Kind != compaction.EventRefused || !strings.Contains(e.Reason, "does not hold the range") {
			t.Errorf("told %+v", e)
		}
	})
	t.Run("the task dies", func(t *testing.T) {
		t.Parallel()
		for _, kind := range []abi.NoticeKind{abi.NoticeCompleted, abi.NoticeFailed, abi.NoticeCancelled} {
			d := newDesk()
			c := d.at(t, says("short"), nil)
			log := filler()
			c.Consider(t.Context(), thread, log)
			consume(t, c, log, []abi.Notice{{Kind: kind, TaskID: d.last(t).TaskID, Error: "out of memory"}})
			intact(t, d, c, log, compaction.EventFailed, "ended without a result: out of memory")
			if c.Pending(thread) {
				t.Error("the reservation was kept")
			}
			// It is not asked any more when its turn comes.
			for _, n := range d.run() {
				if n.Kind == abi.NoticeCustom || n.Kind == abi.NoticeCompleted {
					t.Errorf("a dead task said %+v", n)
				}
			}
		}
	})
}

// A summarizer that ignores its deadline does not hold the thread up, and neither
// does a task that never gets its turn.
func TestHungTasks(t *testing.T) {
	t.Parallel()
	t.Run("ignores its deadline", func(t *testing.T) {
		t.Parallel()
		d := newDesk()
		entered, gate := make(chan struct{}), make(chan struct{})
		c := d.at(t, scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
			close(entered)
			<-gate
			return &abi.Summary{Text: "too late"}, nil
		}), nil)
		log := filler()
		c.Consider(t.Context(), thread, log)
		ended := make(chan []abi.Notice)
		go func() { ended <- d.run() }()
		<-entered
		d.pass(2 * time.Minute)
		c.Consider(t.Context(), thread, log)
		if !c.Pending(thread) {
			t.Error("given up at the deadline, not after it")
		}
		d.pass(time.Millisecond)
		c.Consider(t.Context(), thread, log)
		if kinds := d.kinds(); c.Pending(thread) || len(kinds) != 5 || d.events[2].Decision.Reason != abi.ReasonPending ||
			kinds[3] != compaction.EventFailed || !strings.Contains(d.events[3].Reason, "timed out") {
			t.Fatalf("told %+v", d.events)
		}
		close(gate)
		said := len(d.kinds())
		consume(t, c, log, <-ended)
		if c.Total(thread) != 0 || len(d.kinds()) != said || !reflect.DeepEqual(c.View(thread, log), log) {
			t.Errorf("told %v", d.kinds())
		}
	})
	t.Run("never gets its turn", func(t *testing.T) {
		t.Parallel()
		d := newDesk()
		c := d.at(t, says("x"), nil)
		log := filler()
		c.Consider(t.Context(), thread, log)
		d.pass(8 * time.Minute)
		c.Consider(t.Context(), thread, log)
		if !c.Pending(thread) {
			t.Error("given up while it waits for its turn")
		}
		d.pass(time.Millisecond)
		c.Consider(t.Context(), thread, log)
		if c.Pending(thread) {
			t.Error("waits for ever")
		}
	})
}
