package storetest

import (
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/compaction"
)

// TestStore checks that stores keep the contract. Open makes an empty one; what it
// returns next opens the same again, as another process would.
func TestStore(t *testing.T, open func(t *testing.T) (store compaction.Store, again func() compaction.Store)) {
	for name, check := range map[string]func(*testing.T, compaction.Store, func() compaction.Store){
		"new":         isNew,
		"round trip":  roundTrip,
		"conflict":    conflict,
		"threads":     threads,
		"no aliasing": noAliasing,
		"race":        race,
		"names":       names,
		"events":      events,
		"ledgers":     ledgers,
	} {
		t.Run(name, func(t *testing.T) {
			s, again := open(t)
			check(t, s, again)
		})
	}
}

// full is a state with every field set.
func full() compaction.State {
	at := time.Date(2026, 1, 2, 3, 4, 5, 6_000_000, time.UTC)
	q := compaction.Quality{Paths: compaction.Survival{Total: 4, Kept: 3}, Overall: 0.75, Savings: 0.5}
	return compaction.State{
		InFlight: &compaction.InFlight{
			ID: "r1", Owner: "p1", Attempt: 2, BoundaryID: "m9", StartedMS: 7, DeadlineMS: 8,
			Range:  compaction.Range{FromID: "m5", ToID: "m9", From: 5, To: 9, Tokens: 100, ReadFiles: []string{"a"}, ModifiedFiles: []string{"b"}},
			Policy: "p", Marker: "r0", Continues: true, Before: 200,
			Result: &compaction.Result{Summary: "</x>\n\"é\u2028", FromID: "m5", ToID: "m9", Quality: q},
		},
		Markers: []compaction.Marker{{
			ID: "r0", ThreadID: "t", FromID: "m1", ToID: "m4", Summary: "s", PreTokens: 2, PostTokens: 1, At: at, TaskID: "bg_0",
			Policy: "p", Quality: q, ReadFiles: []string{"a"}, ModifiedFiles: []string{"b"},
		}},
		Forgot: true, Total: 3, Attempts: 2, Failures: 1, Broken: 4, OpenUntil: at, LastStart: at, LastFail: at, NotBefore: at,
	}
}

func must(t *testing.T, s compaction.Store, thread string, rev uint64, state compaction.State) uint64 {
	t.Helper()
	next, err := s.Swap(thread, rev, state)
	if err != nil || next <= rev {
		t.Fatalf("swap of revision %d: %d, %v", rev, next, err)
	}
	return next
}

func loaded(t *testing.T, s compaction.Store, thread string) (compaction.State, uint64) {
	t.Helper()
	state, rev, err := s.Load(thread)
	if err != nil {
		t.Fatalf("load: %v", err)
	}
	return state, rev
}

func isNew(t *testing.T, s compaction.Store, _ func() compaction.Store) {
	t.Helper()
	if state, rev := loaded(t, s, "t"); rev != 0 || !reflect.DeepEqual(state, compaction.State{}) {
		t.Errorf("a new thread has revision %d: %+v", rev, state)
	}
}

func roundTrip(t *testing.T, s compaction.Store, again func() compaction.Store) {
	t.Helper()
	rev := must(t, s, "t", 0, full())
	for i, s := range []compaction.Store{s, again()} {
		if state, got := loaded(t, s, "t"); got != rev || !reflect.DeepEqual(state, full()) {
			t.Errorf("store %d: revision %d, want %d: %+v", i, got, rev, state)
		}
	}
	rev = must(t, again(), "t", rev, compaction.State{Total: 9})
	if state, got := loaded(t, again(), "t"); got != rev || !reflect.DeepEqual(state, compaction.State{Total: 9}) {
		t.Errorf("revision %d: %+v", got, state)
	}
}

func conflict(t *testing.T, s compaction.Store, again func() compaction.Store) {
	t.Helper()
	first := must(t, s, "t", 0, compaction.State{Total: 1})
	second := must(t, s, "t", first, compaction.State{Total: 2})
	for _, rev := range []uint64{0, first, second + 1, second + 1000} {
		for _, s := range []compaction.Store{s, again()} {
			if _, err := s.Swap("t", rev, full()); !errors.Is(err, compaction.ErrConflict) {
				t.Errorf("revision %d: got %v, want ErrConflict", rev, err)
			}
		}
	}
	if _, err := s.Swap("unknown", 1, full()); !errors.Is(err, compaction.ErrConflict) {
		t.Errorf("an unknown thread: got %v, want ErrConflict", err)
	}
	if state, rev := loaded(t, s, "t"); rev != second || state.Total != 2 {
		t.Errorf("revision %d: %+v", rev, state)
	}
}

func threads(t *testing.T, s compaction.Store, _ func() compaction.Store) {
	t.Helper()
	a := must(t, s, "a", 0, compaction.State{Total: 1})
	must(t, s, "b", 0, compaction.State{Total: 2})
	must(t, s, "a", a, compaction.State{Total: 3})
	for thread, want := range map[string]int{"a": 3, "b": 2, "c": 0} {
		if state, _ := loaded(t, s, thread); state.Total != want {
			t.Errorf("%s has %d, want %d", thread, state.Total, want)
		}
	}
}

func noAliasing(t *testing.T, s compaction.Store, _ func() compaction.Store) {
	t.Helper()
	must(t, s, "t", 0, full())
	state, _ := loaded(t, s, "t")
	state.Markers[0].ID, state.InFlight.ID = "changed", "changed"
	state.Markers = append(state.Markers, compaction.Marker{ID: "more"})
	if again, _ := loaded(t, s, "t"); !reflect.DeepEqual(again, full()) {
		t.Errorf("what was loaded was changed in the store: %+v", again)
	}
}

// race has everybody change every revision: each is changed once.
func race(t *testing.T, s compaction.Store, again func() compaction.Store) {
	t.Helper()
	const each, workers = 20, 4
	var mu sync.Mutex
	won := make(map[uint64]int)
	var wg sync.WaitGroup
	for range workers {
		own := again()
		wg.Go(func() {
			for n := 0; n < each; {
				state, rev, err := own.Load("t")
				if err != nil {
					t.Errorf("load: %v", err)
					return
				}
				state.Total++
				next, err := own.Swap("t", rev, state)
				if errors.Is(err, compaction.ErrConflict) {
					continue
				}
				if err != nil {
					t.Errorf("swap: %v", err)
					return
				}
				n++
				mu.Lock()
				won[next]++
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	for rev, n := range won {
		if n != 1 {
			t.Errorf("revision %d was made %d times", rev, n)
		}
	}
	if state, _ := loaded(t, s, "t"); state.Total != each*workers {
		t.Errorf("%d changes are left of %d", state.Total, each*workers)
	}
}

// names are threads whose ids are no file names.
func names(t *testing.T, s compaction.Store, again func() compaction.Store) {
	t.Helper()
	ids := []string{"", ".", "..", "../../x", "/etc/x", "a b", "A", "a", "é", "\x00\xff", "CON", strings.Repeat("x", 5000), strings.Repeat("x", 5001)}
	for i, id := range ids {
		must(t, s, id, 0, compaction.State{Total: i + 1})
		if err := s.Record(compaction.Event{Kind: compaction.EventSwapped, Thread: id}); err != nil {
			t.Errorf("%.20q: record: %v", id, err)
		}
	}
	for i, id := range ids {
		if state, _ := loaded(t, again(), id); state.Total != i+1 {
			t.Errorf("%.20q has %d, want %d", id, state.Total, i+1)
		}
	}
}

// events come back in order, where the store can give them back.
func events(t *testing.T, s compaction.Store, again func() compaction.Store) {
	t.Helper()
	for i := range 20 {
		thread := fmt.Sprintf("t%d", i%2)
		if err := s.Record(compaction.Event{Kind: compaction.EventFailed, Thread: thread, Attempt: i, Reason: "line\nbreak"}); err != nil {
			t.Fatalf("record: %v", err)
		}
	}
	var got []compaction.Event
	switch r := again().(type) {
	case interface {
		Events(thread string) []compaction.Event
	}:
		got = r.Events("t1")
	case interface {
		Events(thread string) ([]compaction.Event, error)
	}:
		var err error
		if got, err = r.Events("t1"); err != nil {
			t.Fatalf("events: %v", err)
		}
	default:
		return
	}
	if len(got) != 10 {
		t.Fatalf("%d events, want 10", len(got))
	}
	for i, e := range got {
		if e.Attempt != 2*i+1 || e.Reason != "line\nbreak" || e.Thread != "t1" {
			t.Errorf("event %d is %+v", i, e)
		}
	}
}
