package threadtest

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/thread"
)

// writers of two processes do not come between the messages of a call, and neither messages nor events are lost.
func writers(w *world) {
	const workers, calls, each = 4, 5, 4
	var wg sync.WaitGroup
	for n := range workers {
		s := []*thread.Threads{w.one, w.two}[n%2]
		wg.Go(func() {
			for c := range calls {
				var messages []abi.Message
				for i := range each {
					messages = append(messages, message(fmt.Sprintf("%d/%d/%d", n, c, i), "x"))
				}
				own := fmt.Sprint("own ", n)
				err := errors.Join(s.Append(w.Context(), "t", messages...), s.Append(w.Context(), own, messages[0]), s.Record(compaction.Event{Thread: "t", Reason: own, Attempt: c}))
				if err != nil {
					w.Error(err)
				}
			}
		})
	}
	wg.Wait()
	log, err := w.two.Messages(w.Context(), "t")
	if err != nil || len(log) != workers*calls*each {
		w.Fatalf("%d messages of %d (%v)", len(log), workers*calls*each, err)
	}
	next := make(map[int]int)
	for at := 0; at < len(log); at += each {
		var n, c, i int
		if _, err := fmt.Sscanf(log[at].ID, "%d/%d/%d", &n, &c, &i); err != nil || i != 0 || c != next[n] {
			w.Fatalf("message %d is %s, and call %d of its writer comes next (%v)", at, log[at].ID, next[n], err)
		}
		next[n]++
		for i := range each {
			if want := fmt.Sprintf("%d/%d/%d", n, c, i); log[at+i].ID != want {
				w.Fatalf("message %d is %s, want %s", at+i, log[at+i].ID, want)
			}
		}
	}
	for n := range workers {
		own := fmt.Sprint("own ", n)
		log, err := w.one.Messages(w.Context(), own)
		events, err2 := w.one.Events(w.Context(), "t")
		events = slices.DeleteFunc(events, func(e compaction.Event) bool { return e.Reason != own })
		inOrder := slices.IsSortedFunc(events, func(a, b compaction.Event) int { return a.Attempt - b.Attempt })
		if err := errors.Join(err, err2); err != nil || len(log) != calls || len(events) != calls || !inOrder {
			w.Errorf("writer %d has %d messages and %d events of %d, in order: %t (%v)", n, len(log), len(events), calls, inOrder, err)
		}
	}
}

// events are bounded, and the newest stay.
func events(w *world) {
	const newest, each = 10, thread.MaxEvents / 10
	many := slices.Repeat([]compaction.Event{{Thread: "t", Kind: compaction.EventFailed}}, each)
	for range thread.MaxEvents / each {
		_, err := w.one.Commit(w.Context(), "t", thread.Commit{Events: many})
		w.must(err)
	}
	for i := range newest {
		w.must(w.one.Record(compaction.Event{Thread: "t", Kind: compaction.EventSwapped, Attempt: i}))
	}
	got, err := w.two.Events(w.Context(), "t")
	if err != nil || len(got) != thread.MaxEvents {
		w.Fatalf("%d events come back, want %d (%v)", len(got), thread.MaxEvents, err)
	}
	for i, e := range got[len(got)-newest:] {
		if e.Kind != compaction.EventSwapped || e.Attempt != i {
			w.Errorf("event %d of the newest is %s %d", i, e.Kind, e.Attempt)
		}
	}
}

// commit changes all kinds at once, or none.
func commit(w *world) {
	w.add("t", message("a", "1"))
	c := thread.Commit{
		Append: []abi.Message{message("b", "2")}, Run: "r", Replace: []abi.Message{message("a", "changed")}, State: &compaction.State{Total: 1},
		Events: []compaction.Event{{Thread: "t", Attempt: 1}}, Put: []store.Cell{{Kind: "run", Key: "r", Value: []byte("done")}},
	}
	before, err := w.store.Read(w.Context(), "t", store.Query{})
	w.must(err)
	rev, err := w.one.Commit(w.Context(), "t", c)
	w.must(err)
	after, err := w.store.Read(w.Context(), "t", store.Query{Cells: []store.Range{store.One("run", "r")}})
	w.must(err)
	if run, _ := after.Cell("run", "r"); string(run) != "done" || rev == 0 || after.Revision <= before.Revision {
		w.Errorf("the run is %q, revision %d after %d", run, after.Revision, before.Revision)
	}
	check := func() {
		w.Helper()
		w.expect("t", message("a", "changed"), message("b", "2"))
		state, at, err := w.two.Load("t")
		all, err2 := w.two.Events(w.Context(), "t")
		if err := errors.Join(err, err2); err != nil || state.Total != 1 || at != rev || len(all) != 1 {
			w.Errorf("state %d at %d, want 1 at %d; %d events (%v)", state.Total, at, rev, len(all), err)
		}
	}
	check()
	if _, log, err := readAll(w, "t"); err != nil || log[0].Run != "" || log[1].Run != "r" {
		w.Errorf("the log is %+v (%v)", log, err)
	}
	if _, err := w.two.Commit(w.Context(), "t", c); !errors.Is(err, compaction.ErrConflict) {
		w.Errorf("a commit of an old state: %v", err)
	}
	c.Base, c.Replace = rev, []abi.Message{message("z", "stranger")}
	if _, err := w.two.Commit(w.Context(), "t", c); err == nil {
		w.Error("a message that is not there was replaced")
	}
	check()
	if _, err := w.one.Commit(w.Context(), "t", thread.Commit{}); err != nil {
		w.Error(err)
	}
}

// conflict of two processes: one that read before the other's change changes nothing.
func conflict(w *world) {
	first, err := w.one.Swap("t", 0, compaction.State{Total: 1})
	w.must(err)
	if _, err := w.two.Swap("t", 0, compaction.State{Total: 2}); !errors.Is(err, compaction.ErrConflict) {
		w.Errorf("a new state was made twice: %v", err)
	}
	w.add("t", message("a", "x")) // is in no state's way
	second, err := w.two.Swap("t", first, compaction.State{Total: 3})
	w.must(err)
	if _, err := w.one.Swap("t", first, compaction.State{Total: 4}); !errors.Is(err, compaction.ErrConflict) {
		w.Errorf("a change was overwritten: %v", err)
	}
	if state, rev, err := w.one.Load("t"); err != nil || rev != second || state.Total != 3 {
		w.Errorf("read %d at %d, want 3 at %d (%v)", state.Total, rev, second, err)
	}
}

// drop deletes all of a thread. A state that was read before does not replace that of a new thread of the same name.
func drop(w *world) {
	w.add("t", message("m", "x"))
	old, err := w.one.Swap("t", 0, compaction.State{Total: 1})
	w.must(err)
	dropThread(w, "t")
	if _, err := w.one.Messages(w.Context(), "t"); !errors.Is(err, thread.ErrUnknown) {
		w.Errorf("a dropped thread: %v", err)
	}
	w.listed()
	w.add("t", message("m", "y"))
	_, err = w.one.Swap("t", 0, compaction.State{Total: 2})
	w.must(err)
	if _, err := w.one.Swap("t", old, compaction.State{Total: 3}); !errors.Is(err, compaction.ErrConflict) {
		w.Errorf("got %v", err)
	}
	w.expect("t", message("m", "y"))
	w.listed("t")
}

func dropThread(w *world, id string) {
	w.Helper()
	_, err := store.ApplySurely(w.Context(), w.store, store.Batch{Thread: id, Base: store.AnyRevision, Drop: true})
	w.must(err)
}
