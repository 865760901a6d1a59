package sessiontest

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
)

// writers of one handle do not come between the messages of a call, and none is lost.
func writers(t *testing.T, s session.Store, again func() session.Store) {
	const workers, calls, each = 6, 12, 4
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for c := range calls {
				var messages []abi.Message
				for i := range each {
					messages = append(messages, message(fmt.Sprintf("%d/%d/%d", w, c, i), "x"))
				}
				if err := s.Append("t", messages...); err != nil {
					t.Errorf("append: %v", err)
				}
				if err := s.Append(fmt.Sprint("own ", w), messages[0]); err != nil {
					t.Errorf("append: %v", err)
				}
				if _, err := s.Log("t"); err != nil {
					t.Errorf("log: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for _, s := range []session.Store{s, again()} {
		log, err := s.Log("t")
		if err != nil || len(log) != workers*calls*each {
			t.Fatalf("%d messages of %d (%v)", len(log), workers*calls*each, err)
		}
		next := make(map[int]int)
		for at := 0; at < len(log); at += each {
			var w, c, i int
			if _, err := fmt.Sscanf(log[at].ID, "%d/%d/%d", &w, &c, &i); err != nil || i != 0 || c != next[w] {
				t.Fatalf("message %d is %s, and call %d of its writer comes next (%v)", at, log[at].ID, next[w], err)
			}
			next[w]++
			for i := range each {
				if want := fmt.Sprintf("%d/%d/%d", w, c, i); log[at+i].ID != want {
					t.Fatalf("message %d is %s, want %s", at+i, log[at+i].ID, want)
				}
			}
		}
		for w := range workers {
			if log, err := s.Log(fmt.Sprint("own ", w)); err != nil || len(log) != calls {
				t.Errorf("writer %d has %d messages of %d (%v)", w, len(log), calls, err)
			}
		}
	}
}

// handles of the same threads write side by side, each to its own, and read all.
func handles(t *testing.T, s session.Store, again func() session.Store) {
	const calls = 25
	all := []session.Store{s, again(), again()}
	var wg sync.WaitGroup
	for h, s := range all {
		wg.Go(func() {
			thread := fmt.Sprint("t", h)
			for i := range calls {
				err := errors.Join(s.Append(thread, message(fmt.Sprint(i), "x")), s.Record(compaction.Event{Thread: thread, Attempt: i}))
				if err != nil {
					t.Errorf("handle %d: %v", h, err)
				}
			}
		})
	}
	wg.Wait()
	for h, s := range append(all, again()) {
		for o := range all {
			thread := fmt.Sprint("t", o)
			log, err := s.Log(thread)
			events, err2 := s.Events(thread)
			if err := errors.Join(err, err2); err != nil || len(log) != calls || len(events) != calls {
				t.Fatalf("handle %d reads %d messages and %d events of %s, want %d (%v)", h, len(log), len(events), thread, calls, err)
			}
			for i := range calls {
				if log[i].ID != fmt.Sprint(i) || events[i].Attempt != i {
					t.Errorf("handle %d: %s has message %s and event %d at %d", h, thread, log[i].ID, events[i].Attempt, i)
				}
			}
		}
	}
}

// conflict of two handles: whoever read before the other's change changes nothing.
func conflict(t *testing.T, s session.Store, again func() session.Store) {
	other := again()
	first, err := s.Swap("t", 0, compaction.State{Total: 1})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := other.Swap("t", 0, compaction.State{Total: 2}); !errors.Is(err, compaction.ErrConflict) {
		t.Errorf("a new thread was made twice: %v", err)
	}
	state, rev, err := other.Load("t")
	if err != nil || rev != first || state.Total != 1 {
		t.Fatalf("the other reads %d at %d, want revision %d (%v)", state.Total, rev, first, err)
	}
	second, err := other.Swap("t", rev, compaction.State{Total: 3})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap("t", first, compaction.State{Total: 4}); !errors.Is(err, compaction.ErrConflict) {
		t.Errorf("a change was overwritten: %v", err)
	}
	for _, s := range []session.Store{s, other, again()} {
		if state, rev, err := s.Load("t"); err != nil || rev != second || state.Total != 3 {
			t.Errorf("read %d at %d, want 3 at %d (%v)", state.Total, rev, second, err)
		}
	}
	add(t, s, "t", message("a", "x"))
	if _, err := other.Swap("t", second, compaction.State{Total: 5}); err != nil {
		t.Errorf("a message was in the way of a state: %v", err)
	}
}

// threads have nothing of each other.
func threads(t *testing.T, s session.Store, again func() session.Store) {
	for i, thread := range []string{"b", "a", "a/b", "ab"} {
		add(t, s, thread, message("m", thread))
		if err := s.Record(compaction.Event{Thread: thread, Attempt: i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Replace("a", message("m", "changed")); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Swap("a", 0, compaction.State{Total: 1}); err != nil {
		t.Fatal(err)
	}
	s = again()
	for i, thread := range []string{"b", "a", "a/b", "ab"} {
		want := thread
		if thread == "a" {
			want = "changed"
		}
		expect(t, s, thread, message("m", want))
		if got, err := s.Events(thread); err != nil || len(got) != 1 || got[0].Attempt != i || got[0].Thread != thread {
			t.Errorf("events of %s are %+v (%v)", thread, got, err)
		}
		if state, rev, err := s.Load(thread); err != nil || (rev != 0) != (thread == "a") || (state.Total == 1) != (thread == "a") {
			t.Errorf("%s has a state %d at %d (%v)", thread, state.Total, rev, err)
		}
	}
	listed(t, s, "a", "a/b", "ab", "b")
}

// events that come back are bounded, and the newest.
func events(t *testing.T, s session.Store, again func() session.Store) {
	const workers, newest = 20, 50
	var wg sync.WaitGroup
	for range workers {
		wg.Go(func() {
			for range session.MaxEvents / workers {
				if err := s.Record(compaction.Event{Thread: "t", Kind: compaction.EventFailed}); err != nil {
					t.Errorf("record: %v", err)
				}
			}
		})
	}
	wg.Wait()
	for i := range newest {
		if err := s.Record(compaction.Event{Thread: "t", Kind: compaction.EventSwapped, Attempt: i}); err != nil {
			t.Fatal(err)
		}
	}
	got, err := again().Events("t")
	if err != nil || len(got) != session.MaxEvents {
		t.Fatalf("%d events come back, want %d (%v)", len(got), session.MaxEvents, err)
	}
	for i, e := range got[len(got)-newest:] {
		if e.Kind != compaction.EventSwapped || e.Attempt != i {
			t.Errorf("event %d of the newest is %s %d", i, e.Kind, e.Attempt)
		}
	}
}

// reopen finds all that was kept.
func reopen(t *testing.T, s session.Store, again func() session.Store) {
	add(t, s, "t", message("a", "1"), message("b", "2"))
	rev, err := s.Swap("t", 0, compaction.State{Total: 7})
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(s.Replace("t", message("b", "3")), s.Record(compaction.Event{Thread: "t", Attempt: 4}), s.Close()); err != nil {
		t.Fatal(err)
	}
	s = again()
	expect(t, s, "t", message("a", "1"), message("b", "3"))
	if state, at, err := s.Load("t"); err != nil || at != rev || state.Total != 7 {
		t.Errorf("state %d at %d, want 7 at %d (%v)", state.Total, at, rev, err)
	}
	if got, err := s.Events("t"); err != nil || len(got) != 1 || got[0].Attempt != 4 {
		t.Errorf("events %+v (%v)", got, err)
	}
	add(t, s, "t", message("c", "4"))
	if _, err := s.Swap("t", rev, compaction.State{Total: 8}); err != nil {
		t.Error(err)
	}
	expect(t, again(), "t", message("a", "1"), message("b", "3"), message("c", "4"))
}

// closed handles fail, and take no other with them.
func closed(t *testing.T, s session.Store, again func() session.Store) {
	other := again()
	add(t, s, "t", message("a", "1"))
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatalf("close: %v", err)
	}
	_, _, load := s.Load("t")
	_, swap := s.Swap("t", 0, compaction.State{})
	_, log := s.Log("t")
	_, events := s.Events("t")
	_, threads := s.Threads()
	for name, err := range map[string]error{
		"load": load, "swap": swap, "log": log, "events": events, "threads": threads,
		"append": s.Append("t", message("b", "2")), "replace": s.Replace("t", message("a", "2")), "record": s.Record(compaction.Event{Thread: "t"}),
	} {
		if err == nil || errors.Is(err, compaction.ErrConflict) || errors.Is(err, session.ErrUnknown) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
	add(t, other, "t", message("b", "2"))
	expect(t, other, "t", message("a", "1"), message("b", "2"))
}
