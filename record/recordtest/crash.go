package recordtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/internal/killtest"
	"github.com/mortise-dev/mortise/record"
)

// kind is that of the children of [TestCrash].
const kind = "RECORD"

// writers is how many runs a child has at a time. All children write to the run of everybody.
const (
	writers   = 2
	everybody = "everybody"
)

// OpenFunc opens the store of a name, such as a path or a URL, and says how to let go of all that it
// has opened.
type OpenFunc func(ctx context.Context, name string) (s record.Store, closeAll func() error, err error)

// CrashChild makes this process a child of [TestCrash], if it was started as one, and does not
// return then. Call it first in TestMain.
func CrashChild(open OpenFunc) {
	killtest.Child(kind, func(ctx context.Context, l killtest.Life, say func(...any)) error {
		s, _, err := open(ctx, l.Name)
		if err != nil {
			return err
		}
		failed := make(chan error)
		for w := range writers {
			go func() { failed <- many(s, fmt.Sprintf("r%d.%d.%d", l.Slot, l.Number, w), say) }()
		}
		go func() { failed <- forEver(s, fmt.Sprintf("%d.%d", l.Slot, l.Number), say) }()
		return <-failed
	})
}

// runEntries is how many entries a run of a child has.
const runEntries = 7

// many keeps run after run.
func many(s record.Store, name string, say func(...any)) error {
	for n := 0; ; n++ {
		run := fmt.Sprintf("%s.%d", name, n)
		if err := s.Start(start(run)); err != nil {
			return err
		}
		for i := range runEntries {
			if err := s.Add(run, record.Entry{Plugin: run, Step: i}); err != nil {
				return err
			}
			say("added", run, i)
		}
		if err := s.End(run, record.End{}); err != nil {
			return err
		}
		say("ended", run, runEntries)
	}
}

// forEver writes to one run, beside others.
func forEver(s record.Store, who string, say func(...any)) error {
	if err := s.Start(start(everybody)); err != nil {
		return err
	}
	for i := 0; ; i++ {
		if err := s.Add(everybody, record.Entry{Plugin: who, Step: i}); err != nil {
			return err
		}
		say("shared", who, i)
	}
}

// TestCrash kills processes that keep records in one store, two at a time, at random moments, and
// compares what they said with what is there: nothing that was acknowledged is lost, nothing is there
// twice or out of order. The children are the test binary itself: its TestMain calls [CrashChild].
func TestCrash(t *testing.T, open OpenFunc, name string) {
	t.Helper()
	var mu sync.Mutex
	shared := map[string]int{}
	killtest.Run(t, kind, name, func(l killtest.Life, said []string) {
		s, closeAll, err := open(t.Context(), name)
		if err != nil {
			t.Errorf("open after %s: %v", l, err)
			return
		}
		added, ended := map[string]int{}, map[string]bool{}
		for _, line := range said {
			var done, name string
			var n int
			if _, err := fmt.Sscan(line, &done, &name, &n); err != nil {
				t.Errorf("%s said %q: %v", l, line, err)
			}
			switch done {
			case "added":
				added[name] = n + 1
			case "ended":
				ended[name] = true
			case "shared":
				mu.Lock()
				shared[name] = n + 1
				mu.Unlock()
			}
		}
		for run, entries := range added {
			survived(t, s, run, entries, ended[run])
		}
		if err := errors.Join(s.Close(), closeAll()); err != nil {
			t.Errorf("close after %s: %v", l, err)
		}
	})
	s, closeAll, err := open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	everyone(t, s, shared)
	if err := errors.Join(s.Close(), closeAll()); err != nil {
		t.Errorf("close: %v", err)
	}
}

// survived checks a run of which so many entries were acknowledged.
func survived(t *testing.T, s record.Store, run string, entries int, ended bool) {
	t.Helper()
	r, err := s.Load(run)
	if err != nil {
		t.Errorf("%d entries of %s were acknowledged: %v", entries, run, err)
		return
	}
	if len(r.Starts) != 1 || len(r.Entries) < entries || ended && len(r.Ends) != 1 {
		t.Errorf("%s has %d starts, %d entries, %d ends; %d entries were acknowledged, the end: %v",
			run, len(r.Starts), len(r.Entries), len(r.Ends), entries, ended)
	}
	for i, e := range r.Entries {
		if e.Step != i || e.Plugin != run {
			t.Errorf("entry %d of %s is %s %d", i, run, e.Plugin, e.Step)
		}
	}
}

// everyone checks the run that all have written to.
func everyone(t *testing.T, s record.Store, shared map[string]int) {
	t.Helper()
	r, err := s.Load(everybody)
	if err != nil {
		t.Errorf("the run of everybody: %v", err)
		return
	}
	next := map[string]int{}
	for _, e := range r.Entries {
		if e.Step != next[e.Plugin] {
			t.Errorf("%s: entry %d came in the place of %d", e.Plugin, e.Step, next[e.Plugin])
		}
		next[e.Plugin] = e.Step + 1
	}
	for who, n := range shared {
		if next[who] < n {
			t.Errorf("%s has %d entries, %d were acknowledged", who, next[who], n)
		}
	}
}
