package state_test

import (
	"reflect"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/phases/state"
)

func TestWatch(t *testing.T) {
	t.Parallel()
	s := build(t)
	var heard []string
	watch := func(name string) func() {
		stop, err := s.Watch(func(c state.Change) {
			heard = append(heard, name)
			if v, _ := c.Snapshot.Read("p/excl"); v != int64(c.Revision) || c.Previous != c.Revision-1 {
				t.Errorf("%s received %+v, excl is %v", name, c, v)
			}
			if c.Updates != 2 || !reflect.DeepEqual(c.Keys, []string{"p/comm", "p/excl"}) {
				t.Errorf("%s received %d updates of %v", name, c.Updates, c.Keys)
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return stop
	}
	stop := watch("a")
	watch("b")
	apply(t, s, set("p/excl", 1), add("p/comm", 1))
	stop()
	stop()
	apply(t, s, set("p/excl", 2), add("p/comm", 1))
	apply(t, s) // nothing
	if want := []string{"a", "b", "b"}; !reflect.DeepEqual(heard, want) {
		t.Errorf("received %v, want %v", heard, want)
	}
}

// However commits race, watchers receive them in order and one at a time; a
// watcher may itself commit.
func TestWatchInOrder(t *testing.T) {
	t.Parallel()
	s := build(t)
	var last, heard uint64
	inside := false
	_, err := s.Watch(func(c state.Change) {
		if inside {
			t.Error("a watcher is called while it is called")
		}
		inside = true
		defer func() { inside = false }()
		if c.Previous != last || c.Revision != last+1 {
			t.Errorf("received %d to %d after %d", c.Previous, c.Revision, last)
		}
		last = c.Revision
		heard++
		if c.Revision%10 == 0 {
			if _, err := s.Apply(t.Context(), batch(add("p/kept", 1))); err != nil {
				t.Error(err)
			}
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 100 {
		wg.Go(func() { apply(t, s, add("p/comm", 1)) })
	}
	wg.Wait()
	if got := s.Snapshot().Revision(); heard != got || got < 110 {
		t.Errorf("received %d of %d commits", heard, got)
	}
}

func TestWatchersAreBounded(t *testing.T) {
	t.Parallel()
	s := state.New()
	var stop func()
	for range 64 {
		var err error
		if stop, err = s.Watch(func(state.Change) {}); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.Watch(func(state.Change) {}); err == nil {
		t.Error("a 65th watcher was taken")
	}
	stop()
	if _, err := s.Watch(func(state.Change) {}); err != nil {
		t.Error(err)
	}
}

// A watcher that panics does not keep the others from hearing of later commits.
func TestWatcherPanics(t *testing.T) {
	t.Parallel()
	s := build(t)
	heard := 0
	if _, err := s.Watch(func(c state.Change) {
		heard++
		if c.Revision == 1 {
			panic("watcher")
		}
	}); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
		}()
		apply(t, s, set("p/excl", 1))
	}()
	apply(t, s, set("p/excl", 2))
	if heard != 2 {
		t.Errorf("received %d commits", heard)
	}
}
