package compaction_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// editions is a summarizer with versions, of which those in bad fail.
type editions struct {
	version string
	bad     []string
	// before is what a roll-back leads to, empty when the version in use is not on trial.
	before string
	asked  []string
}

func (*editions) Name() string      { return "editions" }
func (e *editions) Version() string { return e.version }

func (e *editions) RollBack(version, reason string) bool {
	e.asked = append(e.asked, version+": "+reason)
	if e.before == "" || version != e.version {
		return false
	}
	e.version, e.before = e.before, ""
	return true
}

func (e *editions) Summarize(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
	if slices.Contains(e.bad, e.version) {
		return nil, errors.New("version " + e.version + " is broken")
	}
	return &abi.Summary{Text: "short"}, nil
}

func (e *editions) compactor(t *testing.T, d *desk, breaker int, store compaction.Store) *compaction.Compactor {
	t.Helper()
	return d.at(t, e, func(cfg *compaction.Config) {
		cfg.Policy.BreakerFailures, cfg.PolicyName, cfg.Store = breaker, "editions", store
	})
}

// TestBreakerRollsBack: where the breaker would open during a trial, the version before
// takes the requests, and the breaker is closed for it.
func TestBreakerRollsBack(t *testing.T) {
	t.Parallel()
	for _, failures := range []int{1, 3} {
		d, s := newDesk(), &editions{version: "two", before: "one", bad: []string{"two"}}
		c := s.compactor(t, d, failures, compaction.NewMemory())
		log := filler()
		for range failures {
			if len(s.asked) > 0 {
				t.Fatalf("asked for a roll-back before the breaker opens: %q", s.asked)
			}
			if _, kind := attempt(t, d, c, log); kind != compaction.EventFailed {
				t.Fatalf("it was %s", kind)
			}
			d.pass(time.Minute)
		}
		if len(s.asked) != 1 || !strings.Contains(s.asked[0], "version two is broken") || slices.Contains(d.kinds(), compaction.EventBreaker) {
			t.Fatalf("after %d failures: roll-backs %q, events %v", failures, s.asked, d.kinds())
		}
		if policy, kind := attempt(t, d, c, log); policy != "editions" || kind != compaction.EventSwapped {
			t.Errorf("after the roll-back %s wrote, and it was %s", policy, kind)
		}
	}
}

// TestBreakerOfVersion: without a roll-back the breaker opens, for the version that failed and
// for no other, in the next process too.
func TestBreakerOfVersion(t *testing.T) {
	t.Parallel()
	d, s := newDesk(), &editions{version: "two", bad: []string{"two"}}
	store := compaction.NewMemory()
	c := s.compactor(t, d, 2, store)
	log := filler()
	expect := func(policy string, kind compaction.EventKind) {
		t.Helper()
		if p, k := attempt(t, d, c, log); p != policy || k != kind {
			t.Fatalf("%s wrote, and it was %s; want %s and %s", p, k, policy, kind)
		}
	}
	for range 2 {
		expect("editions", compaction.EventFailed)
		d.pass(10 * time.Second)
	}
	if d.last(t).Kind != compaction.EventBreaker {
		t.Fatalf("%+v", d.last(t))
	}
	c = s.compactor(t, d, 2, store) // of the next process
	expect("ledger", compaction.EventSwapped)
	c.Undo(thread)
	c.Request(thread, "")
	s.version = "three"
	expect("editions", compaction.EventSwapped)
	// What failed and is gone does not count.
	c.Undo(thread)
	c.Request(thread, "")
	s.version = "two"
	for range 3 {
		if !c.Consider(t.Context(), thread, log) {
			t.Fatalf("not started: %+v", d.last(t).Decision)
		}
		notices := d.run() // version two answers
		s.version = "three"
		consume(t, c, log, notices)
		s.version = "two"
		if d.last(t).Kind != compaction.EventFailed {
			t.Fatalf("%+v", d.last(t))
		}
		d.pass(time.Minute)
	}
}
