package threadtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/killtest"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/thread"
)

// kind is that of the children of [TestCrash].
const kind = "THREAD"

// OpenNamedFunc opens the store of a name, such as a path or a URL, and returns how to close it.
type OpenNamedFunc = func(ctx context.Context, name string) (s store.Store, closeStore func() error, err error)

// CrashChild makes this process a child of [TestCrash] if it was started as one, and does not return then. TestMain calls it first.
func CrashChild(open OpenNamedFunc) {
	killtest.Child(kind, func(ctx context.Context, l killtest.Life, say func(...any)) error {
		s, _, err := open(ctx, l.Name)
		if err != nil {
			return err
		}
		failed := make(chan error)
		go func() { failed <- grow(ctx, thread.On(s), fmt.Sprint("log", l.Slot), say) }()
		r, err := thread.NewRecorder(ctx, s, thread.RecordConfig{})
		if err != nil {
			return err
		}
		go func() { failed <- record(r, l, say) }()
		return <-failed
	})
}

// grow continues a conversation by commits: each has two messages, replaces one of the commit before, counts in the compaction state and
// records an event.
func grow(ctx context.Context, s *thread.Threads, id string, say func(...any)) error {
	for {
		log, err := s.Messages(ctx, id)
		if err != nil && !errors.Is(err, thread.ErrUnknown) {
			return err
		}
		state, rev, err := s.State(ctx, id)
		if err != nil {
			return err
		}
		n := len(log)
		state.Total++
		c := thread.Commit{
			Append: []abi.Message{message(fmt.Sprint(n), "new"), message(fmt.Sprint(n+1), "new")},
			State:  &state, Base: rev, Events: []compaction.Event{{Thread: id, Attempt: state.Total}},
		}
		if n > 0 {
			c.Replace = []abi.Message{message(fmt.Sprint(n-2), "replaced")}
		}
		if _, err := s.Commit(ctx, id, c); err != nil {
			return err
		}
		say("grown", id, state.Total)
	}
}

// runEntries is how many decisions a run of a child has.
const runEntries = 7

// writer is a thread.Recorder.
type writer interface {
	Start(s thread.RunStart) error
	Add(run string, d thread.Decision) error
	End(run string, e thread.RunEnd) error
}

// record keeps run after run.
func record(r writer, l killtest.Life, say func(...any)) error {
	for n := 0; ; n++ {
		run := fmt.Sprintf("r%d.%d.%d", l.Slot, l.Number, n)
		if err := r.Start(start(run)); err != nil {
			return err
		}
		say("started", run, 0)
		for i := range runEntries {
			if err := r.Add(run, thread.Decision{Plugin: run, Step: i}); err != nil {
				return err
			}
		}
		if err := r.End(run, thread.RunEnd{}); err != nil {
			return err
		}
		say("ended", run, runEntries)
	}
}

// TestCrash kills processes that grow conversations and keep records in one store, two at a time, at random moments, and compares what they
// acknowledged with what is there: nothing that was acknowledged is lost, nothing is there twice or out of order, and what one commit
// changed is there as a whole. The children are the test binary itself: its TestMain calls [CrashChild].
func TestCrash(t *testing.T, open OpenNamedFunc, name string) {
	t.Helper()
	killtest.Run(t, kind, name, func(l killtest.Life, said []string) {
		s, closeStore, err := open(t.Context(), name)
		if err != nil {
			t.Errorf("open after %s: %v", l, err)
			return
		}
		for _, line := range said {
			var done, what string
			var n int
			if _, err := fmt.Sscan(line, &done, &what, &n); err != nil {
				t.Errorf("%s said %q: %v", l, line, err)
			}
			if strings.HasPrefix(what, "log") {
				grown(t, thread.On(s), what, n)
			} else {
				recorded(t, thread.RecordsOf(s), what, n, done == "ended")
			}
		}
		if err := closeStore(); err != nil {
			t.Errorf("close after %s: %v", l, err)
		}
	})
}

// grown checks a conversation of which so many commits were acknowledged. Another child may add more.
func grown(t *testing.T, s *thread.Threads, id string, commits int) {
	t.Helper()
	all, err := s.Events(t.Context(), id)
	log, err2 := s.Messages(t.Context(), id)
	state, _, err3 := s.Load(id)
	if err := errors.Join(err, err2, err3); err != nil || state.Total < commits || len(log) < 2*commits || len(all) < commits {
		t.Errorf("%s: %d messages, %d events, state %d after %d commits (%v)", id, len(log), len(all), state.Total, commits, err)
		return
	}
	for i, m := range log {
		if want := []string{"replaced", "new"}[i%2]; m.ID != fmt.Sprint(i) || m.Text() != want && i < len(log)-2 {
			t.Errorf("%s: message %d is %s %q", id, i, m.ID, m.Text())
		}
	}
	for i, e := range all {
		if e.Attempt != i+1 {
			t.Errorf("%s: event %d is %d", id, i+1, e.Attempt)
		}
	}
}

func recorded(t *testing.T, s *thread.Records, run string, entries int, ended bool) {
	t.Helper()
	r, err := s.In(t.Context(), "t", run)
	if err != nil || len(r.Starts) != 1 || len(r.Entries) < entries || ended && len(r.Ends) != 1 {
		t.Errorf("%s is %+v; %d entries were acknowledged, the end: %v (%v)", run, r, entries, ended, err)
		return
	}
	for i, e := range r.Entries {
		if e.Step != i || e.Plugin != run {
			t.Errorf("entry %d of %s is %s %d", i, run, e.Plugin, e.Step)
		}
	}
}
