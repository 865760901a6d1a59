package sessiontest

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/killtest"
	"github.com/mortise-dev/mortise/session"
)

// kind is that of the children of [TestCrash].
const kind = "SESSION"

// writersOf is how many threads a child writes to. All children swap the state of everybody.
const (
	writersOf = 3
	everybody = "everybody"
)

// OpenFunc opens the store of a name, such as a path or a URL, and says how to let go of all that it
// has opened.
type OpenFunc func(ctx context.Context, name string) (s session.Store, closeAll func() error, err error)

// CrashChild makes this process a child of [TestCrash], if it was started as one, and does not
// return then. Call it first in TestMain.
func CrashChild(open OpenFunc) {
	killtest.Child(kind, func(ctx context.Context, l killtest.Life, say func(...any)) error {
		s, _, err := open(ctx, l.Name)
		if err != nil {
			return err
		}
		failed := make(chan error)
		for w := range writersOf {
			go func() { failed <- write(s, fmt.Sprintf("%d/%d", l.Slot, w), say) }()
		}
		go func() { failed <- swapping(s, l, say) }()
		go func() { failed <- recording(s, fmt.Sprint("events/", l.Slot), say) }()
		return <-failed
	})
}

// write goes on with a log: messages are numbers, two a call, and the first of each call is
// replaced.
func write(s session.Store, thread string, say func(...any)) error {
	log, err := s.Log(thread)
	if err != nil && !errors.Is(err, session.ErrUnknown) {
		return err
	}
	for n := len(log); ; n += 2 {
		first := fmt.Sprint(n)
		if err := s.Append(thread, message(first, "new"), message(fmt.Sprint(n+1), "new")); err != nil {
			return err
		}
		say("appended", thread, n+1)
		if err := s.Replace(thread, message(first, "replaced")); err != nil {
			return err
		}
		say("replaced", thread, n)
	}
}

// swapping counts, with all others, and leaves who came last.
func swapping(s session.Store, l killtest.Life, say func(...any)) error {
	for {
		state, rev, err := s.Load(everybody)
		if err != nil {
			return err
		}
		state.Total++
		state.InFlight = &compaction.InFlight{Owner: l.String()}
		next, err := s.Swap(everybody, rev, state)
		if errors.Is(err, compaction.ErrConflict) {
			continue
		}
		if err != nil {
			return err
		}
		say("swapped", next, state.Total)
	}
}

func recording(s session.Store, thread string, say func(...any)) error {
	all, err := s.Events(thread)
	if err != nil {
		return err
	}
	for n := len(all); ; n++ {
		if err := s.Record(compaction.Event{Thread: thread, Attempt: n}); err != nil {
			return err
		}
		say("recorded", thread, n)
	}
}

// TestCrash kills processes that append, replace, swap and record on one store, two at a time, at random
// moments, and compares what they said with what is there: nothing that was acknowledged is lost,
// nothing is there twice or out of order, and of each revision there was one change. The children are
// the test binary itself: its TestMain calls [CrashChild].
func TestCrash(t *testing.T, open OpenFunc, name string) {
	t.Helper()
	c := &crash{t: t, swaps: map[uint64]uint64{}, totals: map[uint64]uint64{}}
	killtest.Run(t, kind, name, func(l killtest.Life, said []string) {
		s, closeAll, err := open(t.Context(), name)
		if err != nil {
			t.Errorf("open after %s: %v", l, err)
			return
		}
		c.check(s, l, said)
		if err := errors.Join(s.Close(), closeAll()); err != nil {
			t.Errorf("close after %s: %v", l, err)
		}
	})
}

// crash compares.
type crash struct {
	t *testing.T

	mu sync.Mutex
	// swaps has what each revision counted to, totals the revision of each count.
	swaps, totals map[uint64]uint64
}

// thing is what a child has said: it has done something to a thread, up to a number or with it.
type thing struct {
	done, thread string
	number       uint64
}

func (c *crash) check(s session.Store, l killtest.Life, said []string) {
	appended, recorded, replaced := map[string]uint64{}, map[string]uint64{}, map[string][]uint64{}
	for _, line := range said {
		var t thing
		if _, err := fmt.Sscan(line, &t.done, &t.thread, &t.number); err != nil {
			c.t.Errorf("%s said %q: %v", l, line, err)
		}
		switch t.done {
		case "appended":
			appended[t.thread] = t.number
		case "replaced":
			replaced[t.thread] = append(replaced[t.thread], t.number)
		case "recorded":
			recorded[t.thread] = t.number
		case "swapped":
			c.swapped(s, t)
		}
	}
	for thread, last := range appended {
		c.log(s, thread, last, replaced[thread])
	}
	for thread, last := range recorded {
		c.events(s, thread, last)
	}
}

// log checks one that was acknowledged up to a message.
func (c *crash) log(s session.Store, thread string, last uint64, replaced []uint64) {
	log, err := s.Log(thread)
	if err != nil || uint64(len(log)) <= last {
		c.t.Errorf("%s: %d messages, and number %d was acknowledged (%v)", thread, len(log), last, err)
		return
	}
	for i, m := range log {
		if m.ID != fmt.Sprint(i) {
			c.t.Errorf("%s: message %d is %s", thread, i, m.ID)
		}
	}
	for _, n := range replaced {
		if text := log[n].Text(); text != "replaced" {
			c.t.Errorf("%s: message %d was replaced, and is %q", thread, n, text)
		}
	}
}

func (c *crash) events(s session.Store, thread string, last uint64) {
	all, err := s.Events(thread)
	if err != nil || uint64(len(all)) <= last {
		c.t.Errorf("%s: %d events, and number %d was acknowledged (%v)", thread, len(all), last, err)
	}
	for i, e := range all {
		if e.Attempt != i {
			c.t.Errorf("%s: event %d is %d", thread, i, e.Attempt)
		}
	}
}

// swapped checks that a revision was made once, and is still counted. In the place of the thread is
// the revision.
func (c *crash) swapped(s session.Store, t thing) {
	rev, err := strconv.ParseUint(t.thread, 10, 64)
	if err != nil {
		c.t.Error(err)
		return
	}
	c.mu.Lock()
	_, twice := c.swaps[rev]
	_, lost := c.totals[t.number]
	c.swaps[rev], c.totals[t.number] = t.number, rev
	c.mu.Unlock()
	state, now, err := s.Load(everybody)
	if err != nil || twice || lost || now < rev || uint64(state.Total) < t.number { //nolint:gosec // it counts from 0
		c.t.Errorf("revision %d with %d was acknowledged (twice: %v, over another: %v), and there is %d with %d (%v)",
			rev, t.number, twice, lost, now, state.Total, err)
	}
}
