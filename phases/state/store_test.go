package state_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases/state"
)

func TestRevisionCountsCommits(t *testing.T) {
	t.Parallel()
	s := build(t)
	if got := s.Snapshot().Revision(); got != 0 {
		t.Errorf("a new store is at revision %d", got)
	}
	if _, ok := s.Snapshot().Read("p/excl"); ok {
		t.Error("a key that was never written has a value")
	}
	if got := apply(t, s, set("p/excl", 1), add("p/comm", 2), add("p/comm", 3)); got != 1 {
		t.Errorf("revision %d after one commit of three updates", got)
	}
	if got := read(s, "p/comm"); got != int64(5) {
		t.Errorf("updates came to %v", got)
	}
	// An empty commit is none: its base does not matter.
	if got, err := s.Apply(t.Context(), based(99)); got != 1 || err != nil {
		t.Errorf("an empty commit gave %d, %v", got, err)
	}
	if got, err := s.Commit(t.Context(), s.Begin()); got != 1 || err != nil {
		t.Errorf("an empty transaction gave %d, %v", got, err)
	}
}

func TestUpdatesAccumulateInOrder(t *testing.T) {
	t.Parallel()
	s := build(t)
	apply(t, s,
		state.Update{Key: "p/excl", Op: abi.OpAppend, Value: list{"a"}},
		state.Update{Key: "p/excl", Op: abi.OpAppend, Value: list{"b"}},
		state.Update{Key: "p/excl", Op: abi.OpRemove, Value: list{"a"}},
		state.Update{Key: "p/excl", Op: abi.OpAppend, Value: list{"c"}})
	if got := read(s, "p/excl"); !reflect.DeepEqual(got, list{"b", "c"}) {
		t.Errorf("updates came to %v", got)
	}
}

func TestSnapshotStaysAsItIs(t *testing.T) {
	t.Parallel()
	s := build(t)
	apply(t, s, set("p/excl", "old"), add("p/comm", 1))
	before := s.Snapshot()
	apply(t, s, set("p/excl", "new"), set("p/kept", true))
	if err := s.Uninstall("p"); err != nil {
		t.Fatal(err)
	}
	got := maps.Collect(before.All())
	if want := (fields{"p/excl": "old", "p/comm": int64(1)}); !reflect.DeepEqual(got, want) || before.Revision() != 1 || before.Len() != 2 {
		t.Errorf("the snapshot holds %v at revision %d", got, before.Revision())
	}
	if n := s.Snapshot().Len(); n != 0 {
		t.Errorf("the store has %d values left", n)
	}
}

func TestCommitIsWholeOrNothing(t *testing.T) {
	t.Parallel()
	s := build(t)
	tests := map[string]struct {
		last state.Update
		want string
	}{
		"unknown key":    {set("p/none", 1), "unknown key: p/none"},
		"wrong type":     {add("p/excl", "x"), "add takes a number"},
		"unknown op":     {state.Update{Key: "p/excl", Op: "double"}, "is not one of"},
		"not a value":    {set("p/excl", struct{}{}), "cannot be stored"},
		"larger than it": {set("p/excl", strings.Repeat("x", state.DefaultLimit)), "too large"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := s.Apply(t.Context(), batch(add("p/comm", 1), test.last))
			if err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
			if read(s, "p/comm") != nil || s.Snapshot().Revision() != 0 {
				t.Error("half of it was applied")
			}
		})
	}
}

// Conflicts are found key by key. A stale base is no error in itself.
func TestBaseRevision(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		base     uint64
		update   state.Update
		conflict bool
	}{
		"current base":                         {3, set("p/excl", 9), false},
		"stale, the key was changed":           {1, set("p/excl", 9), true},
		"stale, another key was changed":       {2, set("p/excl", 9), false},
		"stale, commutative":                   {0, add("p/comm", 1), false},
		"stale, set on a commutative key":      {2, set("p/comm", 1), true},
		"stale, the key was never written":     {0, set("p/kept", 1), false},
		"a base that is not there yet":         {4, set("p/kept", 1), true},
		"a base that is not there yet, shared": {4, add("p/comm", 1), true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := build(t)
			apply(t, s, set("p/retained", 1))
			apply(t, s, set("p/excl", 1))
			apply(t, s, add("p/comm", 1))
			_, err := s.Apply(t.Context(), based(test.base, test.update))
			if errors.Is(err, state.ErrConflict) != test.conflict || (err != nil) != test.conflict {
				t.Fatalf("error %v, want a conflict %v", err, test.conflict)
			}
			if want := fmt.Sprintf("revision conflict: expected %d, actual 3", test.base); test.conflict && !strings.Contains(err.Error(), want) {
				t.Errorf("error %v", err)
			}
		})
	}
}

// Of commits made from one revision only one may touch an exclusive key; those
// without a base take turns.
func TestConcurrentCommits(t *testing.T) {
	t.Parallel()
	s := build(t)
	const n = 20
	var wg sync.WaitGroup
	var mu sync.Mutex
	won := 0
	for range n {
		wg.Go(func() {
			_, err := s.Apply(t.Context(), based(0, add("p/excl", 1)))
			if err != nil && !errors.Is(err, state.ErrConflict) {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				won++
			}
		})
		wg.Go(func() {
			if _, err := s.Apply(t.Context(), batch(add("p/kept", 1))); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if won != 1 || read(s, "p/excl") != int64(1) || read(s, "p/kept") != int64(n) || s.Snapshot().Revision() != n+1 {
		t.Errorf("%d won; excl %v, kept %v, revision %d", won, read(s, "p/excl"), read(s, "p/kept"), s.Snapshot().Revision())
	}
}

// A transaction is computed again when others changed a shared key meanwhile, and
// is refused when they changed one that it does not share.
func TestTransactionMeetsAnotherCommit(t *testing.T) {
	t.Parallel()
	s := build(t)
	comm, excl := s.Key("p/comm"), s.Key("p/excl")
	tx := s.Begin()
	if err := errors.Join(tx.Update(comm, abi.OpAdd, int64(1)), tx.Update(comm, abi.OpAdd, int64(2))); err != nil {
		t.Fatal(err)
	}
	tx.Accept()
	apply(t, s, add("p/comm", 10))
	if _, err := s.Commit(t.Context(), tx); err != nil || read(s, "p/comm") != int64(13) {
		t.Errorf("%v, comm is %v", err, read(s, "p/comm"))
	}

	tx = s.Begin()
	if err := tx.Update(excl, abi.OpAdd, int64(1)); err != nil {
		t.Fatal(err)
	}
	tx.Accept()
	apply(t, s, add("p/excl", 10))
	if _, err := s.Commit(t.Context(), tx); !errors.Is(err, state.ErrConflict) || read(s, "p/excl") != int64(10) {
		t.Errorf("%v, excl is %v", err, read(s, "p/excl"))
	}

	// What the operation needs may be gone by then.
	tx = s.Begin()
	if err := tx.Update(comm, abi.OpAdd, int64(1)); err != nil {
		t.Fatal(err)
	}
	tx.Accept()
	apply(t, s, set("p/comm", "text"))
	if _, err := s.Commit(t.Context(), tx); err == nil || !strings.Contains(err.Error(), "it is text") {
		t.Errorf("error %v", err)
	}

	// Nor is a value brought back whose key is gone.
	tx = s.Begin()
	if err := tx.Update(excl, abi.OpSet, int64(1)); err != nil {
		t.Fatal(err)
	}
	tx.Accept()
	if err := s.Uninstall("p"); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Commit(t.Context(), tx); !errors.Is(err, state.ErrUnknownKey) || read(s, "p/excl") != nil {
		t.Errorf("%v, excl is %v", err, read(s, "p/excl"))
	}
}

func TestStagedUpdates(t *testing.T) {
	t.Parallel()
	s := build(t)
	excl, comm := s.Key("p/excl"), s.Key("p/comm")
	tx := s.Begin()
	if err := tx.Update(excl, abi.OpAdd, int64(1)); err != nil {
		t.Fatal(err)
	}
	if v, _ := tx.Load(excl); v != int64(1) || !tx.Empty() {
		t.Errorf("staged is %v, empty %v", v, tx.Empty())
	}
	tx.Discard()
	if _, ok := tx.Load(excl); ok {
		t.Error("what was discarded is there")
	}
	if err := errors.Join(tx.Update(comm, abi.OpAdd, int64(2))); err != nil {
		t.Fatal(err)
	}
	tx.Accept()
	if err := tx.Update(excl, abi.OpAdd, "x"); err == nil {
		t.Error("a bad update was taken")
	}
	if got, want := tx.Batch(), based(0, add("p/comm", int64(2))); !reflect.DeepEqual(got, want) {
		t.Errorf("the batch is %+v", got)
	}
}

// Others wait while a store is held, as long as their context lasts.
func TestHold(t *testing.T) {
	t.Parallel()
	s := build(t)
	commit, release, err := s.Hold(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Apply(ctx, batch(set("p/excl", 1))); !errors.Is(err, context.Canceled) {
		t.Errorf("a commit did not wait: %v", err)
	}
	if _, _, err := s.Hold(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a second holder did not wait: %v", err)
	}
	tx := s.Begin()
	if err := tx.Update(s.Key("p/excl"), abi.OpSet, "mine"); err != nil {
		t.Fatal(err)
	}
	tx.Accept()
	if got, err := commit(tx); got != 1 || err != nil {
		t.Errorf("the holder's commit gave %d, %v", got, err)
	}
	release()
	release() // once is enough
	if got := apply(t, s, set("p/excl", "theirs")); got != 2 {
		t.Errorf("revision %d", got)
	}
}

// A reducer that panics or fails leaves nothing behind, and locks no one out.
func TestReducers(t *testing.T) {
	t.Parallel()
	s := state.New()
	err := s.Install("p",
		&state.Key{Name: "p/max", Merge: abi.MergeCommutative, Native: state.Native{Reduce: func(old any, op abi.Op, operand any) (any, error) {
			if op != "max" {
				return nil, errors.New("only max")
			}
			a, _ := old.(int64)
			b, _ := operand.(int64)
			return max(a, b), nil
		}}},
		&state.Key{Name: "p/bad", Native: state.Native{Reduce: func(_ any, op abi.Op, _ any) (any, error) {
			switch op {
			case "panic":
				panic("reducer")
			case "struct":
				return struct{}{}, nil
			default:
				return strings.Repeat("x", state.DefaultLimit), nil
			}
		}}})
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range []int{3, 7, 5} {
		apply(t, s, state.Update{Key: "p/max", Op: "max", Value: n})
	}
	if got := read(s, "p/max"); got != int64(7) {
		t.Errorf("max is %v", got)
	}
	for op, want := range map[abi.Op]string{"panic": "panicked: reducer", "struct": "cannot be stored", "large": "larger than", "": "is not one of"} {
		_, err := s.Apply(t.Context(), batch(state.Update{Key: "p/max", Op: "max", Value: 100}, state.Update{Key: "p/bad", Op: op}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want one with %q", op, err, want)
		}
	}
	if read(s, "p/max") != int64(7) || s.Snapshot().Revision() != 3 {
		t.Error("half a commit was applied")
	}
	// Set needs no reducer.
	apply(t, s, set("p/max", 1))
}

func TestInstall(t *testing.T) {
	t.Parallel()
	s := build(t)
	for want, install := range map[string]func() error{
		"plugin already installed: p":      func() error { return s.Install("p") },
		"key already registered: p/excl":   func() error { return s.Install("q", &state.Key{Name: "q/x"}, &state.Key{Name: "p/excl"}) },
		"key already registered: q/twice":  func() error { return s.Install("q", &state.Key{Name: "q/twice"}, &state.Key{Name: "q/twice"}) },
		"has no name":                      func() error { return s.Install("q", &state.Key{}) },
		`scope "world"`:                    func() error { return s.Install("q", &state.Key{Name: "q/x", Scope: "world"}) },
		`merge "maybe"`:                    func() error { return s.Install("q", &state.Key{Name: "q/x", Merge: "maybe"}) },
		"must not be negative":             func() error { return s.Install("q", &state.Key{Name: "q/x", Limit: -1}) },
		"plugin not installed: q":          func() error { return s.Uninstall("q") },
		"key already registered: p/kept":   func() error { return s.Redeclare("q", &state.Key{Name: "p/kept"}) },
		"state: plugin not installed: abc": func() error { return s.Uninstall("abc") },
	} {
		if err := install(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want one with %q", err, want)
		}
	}
	if s.Key("q/x") != nil {
		t.Error("a failed installation declared a key")
	}
	if err := s.Install("q", &state.Key{Name: "q/x"}); err != nil {
		t.Error(err)
	}
}

// Uninstalling clears in one commit; what is retained comes back with its plugin.
func TestUninstall(t *testing.T) {
	t.Parallel()
	s := build(t)
	if err := s.Install("q", &state.Key{Name: "q/x"}); err != nil {
		t.Fatal(err)
	}
	apply(t, s, set("p/excl", 1), set("p/kept", 2), set("p/retained", 3), set("q/x", 4))
	if err := s.Uninstall("p"); err != nil {
		t.Fatal(err)
	}
	if read(s, "p/excl") != nil || read(s, "p/kept") != nil || read(s, "q/x") != int64(4) || s.Snapshot().Revision() != 2 {
		t.Errorf("the store holds %v", s.Export())
	}
	if read(s, "p/retained") != int64(3) {
		t.Error("the retained value is gone")
	}
	ks := keys()
	if err := s.Install("p", ks...); err != nil {
		t.Fatal(err)
	}
	if v, ok := s.Snapshot().Load(ks[3]); !ok || v != int64(3) {
		t.Errorf("the retained value came back as %v", v)
	}
	if _, ok := s.Snapshot().Load(ks[0]); ok {
		t.Error("a plugin that comes back finds old state")
	}
	if got := s.Snapshot().Revision(); got != 2 {
		t.Errorf("revision %d: installing is no commit", got)
	}
}
