package plugins_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/plugins"
)

// counted is a plugin that counts its calls in memory, and what it was loaded from.
func counted(t *testing.T, h *host.Host, grants host.Grants, limits host.Limits) (*plugins.Set, phases.Plugin) {
	t.Helper()
	set, err := load(t, h, plugins.Entry{Module: host.Spec{Path: testdata("sticky"), Grants: grants, Limits: limits}})
	if err != nil {
		t.Fatal(err)
	}
	return set, set.Plugins()[0]
}

// says calls the plugin for a run and returns what it counted.
func says(t *testing.T, p phases.Plugin, thread, run string) string {
	t.Helper()
	e := gateEvent()
	e.Run = abi.RunIdentity{ThreadID: thread, RunID: run}
	reply, err := p.OnPhase(t.Context(), e)
	if err != nil {
		return err.Error()
	}
	return reply.Gate.Reason
}

func TestSticky(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, h *host.Host) {
		t.Helper()
		set, p := counted(t, h, host.Grants{Sticky: true}, host.Limits{})
		for _, step := range []struct{ thread, run, want string }{
			{"t", "a", "call 1"},
			{"t", "a", "call 2"},
			{"t", "b", "call 1"}, // another run has another memory
			{"u", "a", "call 1"}, // and one of the same name of another thread
			{"t", "a", "call 3"},
			{"t", "b", "call 2"},
		} {
			if got := says(t, p, step.thread, step.run); got != step.want {
				t.Errorf("run %q of thread %q: %s, want %s", step.run, step.thread, got, step.want)
			}
		}
		// The end of a run ends its instance and no other.
		rt, err := phases.New(phases.Config{Plugins: set.Plugins()})
		if err != nil {
			t.Fatal(err)
		}
		run := abi.RunIdentity{ThreadID: "t", RunID: "a"}
		if _, err := rt.Fire(t.Context(), rt.NewState(nil), phases.Frame{Phase: abi.RunEnd, Run: run}); err != nil {
			t.Fatal(err)
		}
		if a, b := says(t, p, "t", "a"), says(t, p, "t", "b"); a != "call 1" || b != "call 3" {
			t.Errorf("after the end of one: %s, the other: %s", a, b)
		}
		if s := set.Status()[0]; len(s.Granted) != 1 || s.Granted[0] != "sticky" || len(s.Notes) != 0 {
			t.Errorf("granted %v, notes %v", s.Granted, s.Notes)
		}
	})
}

// A guest that breaks has a new instance at the next call. What it is not granted it does without.
func TestSticky_lost(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	_, p := counted(t, h, host.Grants{Sticky: true}, host.Limits{})
	for i := range 4 {
		if got, want := says(t, p, "t", "a"), fmt.Sprint("call ", i+1); got != want {
			t.Fatalf("%s, want %s", got, want)
		}
	}
	e := gateEvent()
	e.Run = abi.RunIdentity{ThreadID: "t", RunID: "a"}
	if _, err := p.OnPhase(t.Context(), e); !isTrap(err) {
		t.Errorf("the fifth call: %v", err)
	}
	if got := says(t, p, "t", "a"); got != "call 1" {
		t.Errorf("after it broke: %s", got)
	}
	set, none := counted(t, h, host.Grants{}, host.Limits{})
	if a, b := says(t, none, "t", "a"), says(t, none, "t", "a"); a != "call 1" || b != "call 1" {
		t.Errorf("without the grant: %s, %s", a, b)
	}
	if a, b := says(t, p, "t", ""), says(t, p, "t", ""); a != "call 1" || b != "call 1" {
		t.Errorf("a call of no run: %s, %s", a, b)
	}
	if notes := set.Status()[0].Notes; len(notes) != 1 {
		t.Errorf("notes %v", notes)
	}
}

func isTrap(err error) bool {
	_, ok := errors.AsType[*host.TrapError](err)
	return ok
}

// There are as many instances as Limits.Sessions allows: the one that was used least lately makes room. A swap begins anew.
func TestSticky_limit(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	set, p := counted(t, h, host.Grants{Sticky: true}, host.Limits{Sessions: 2})
	for _, step := range []struct{ run, want string }{
		{"a", "call 1"}, {"b", "call 1"}, {"a", "call 2"}, {"c", "call 1"}, {"a", "call 3"}, {"b", "call 1"}, {"a", "call 4"}, {"c", "call 1"},
	} {
		if got := says(t, p, "t", step.run); got != step.want {
			t.Errorf("run %s: %s, want %s", step.run, got, step.want)
		}
	}
	spec := host.Spec{Path: testdata("sticky"), Grants: host.Grants{Sticky: true}, Limits: host.Limits{Sessions: 2}}
	if err := set.Swap(t.Context(), "counter", spec, host.SwapOptions{}); err != nil {
		t.Fatal(err)
	}
	if a, b := says(t, p, "t", "a"), says(t, p, "t", "a"); a != "call 1" || b != "call 2" {
		t.Errorf("after a swap: %s, %s", a, b)
	}
}

// Calls for many runs, ends of runs and swaps at the same time: each call is answered, and no run sees another's count.
func TestSticky_concurrent(t *testing.T) {
	t.Parallel()
	h := newHost(t)
	set, p := counted(t, h, host.Grants{Sticky: true}, host.Limits{Sessions: 3})
	ender, ok := p.(phases.Ender)
	if !ok {
		t.Fatal("it hears of no end of a run")
	}
	var wg sync.WaitGroup
	for n := range 6 {
		wg.Go(func() {
			run := abi.RunIdentity{ThreadID: "t", RunID: fmt.Sprint(n)}
			for i := range 60 {
				got := says(t, p, run.ThreadID, run.RunID)
				if got < "call 1" || got > "call 3" {
					t.Errorf("run %d: %s", n, got)
				}
				if i%3 == 2 {
					ender.RunEnded(&run)
				}
			}
		})
	}
	wg.Go(func() {
		for range 5 {
			spec := host.Spec{Path: testdata("sticky"), Grants: host.Grants{Sticky: true}, Limits: host.Limits{Sessions: 3}}
			if err := set.Swap(t.Context(), "counter", spec, host.SwapOptions{}); err != nil {
				t.Error(err)
			}
		}
	})
	wg.Wait()
}

// An instance that is not called for 5 minutes goes.
func TestSticky_idle(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		h, err := host.New(host.Config{})
		if err != nil {
			t.Fatal(err)
		}
		_, p := counted(t, h, host.Grants{Sticky: true}, host.Limits{})
		first := says(t, p, "t", "a")
		time.Sleep(4 * time.Minute)
		second := says(t, p, "t", "a")
		time.Sleep(4 * time.Minute)
		third := says(t, p, "t", "a")
		time.Sleep(5*time.Minute + time.Second)
		if last := says(t, p, "t", "a"); first != "call 1" || second != "call 2" || third != "call 3" || last != "call 1" {
			t.Errorf("%s, %s, %s, %s", first, second, third, last)
		}
		if err := h.Close(t.Context()); err != nil {
			t.Error(err)
		}
	})
}
