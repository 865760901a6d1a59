package compaction

import (
	"errors"
	"fmt"
	"time"
)

// storePause is how long the store is left alone after it failed.
const storePause = time.Second

// load reads the thread's state once. Without it nothing is started, and the view
// is the log. What another process has under way stays its own: a process that only reads the thread loads it, too.
// The caller holds the thread, as in all functions of this file.
func (c *Compactor) load(t *thread) bool {
	if t.loaded && !t.stale {
		return true
	}
	now := c.conf().Now()
	if now.Before(t.loadAfter) {
		return false
	}
	if err := c.read(t); err != nil {
		t.loadAfter = now.Add(storePause)
		c.observe(t, Event{Kind: EventFailed, Reason: fmt.Sprintf("the store cannot be read: %v", err)})
		return false
	}
	if again := t.stale; again {
		c.reloaded(t)
	} else if f := t.state.InFlight; f != nil && f.Result != nil {
		c.inherit(t, *f)
	} else {
		t.found = f != nil
	}
	t.stale = false
	return true
}

// Reload has the state of a thread read again at its next use. A run that begins calls it: another process may have had the thread since.
func (c *Compactor) Reload(id string) {
	t := c.hold(id)
	defer t.mu.Unlock()
	t.stale = t.loaded
}

// reloaded gives up what this process has under way and the store does not, and takes over what is ready there.
func (c *Compactor) reloaded(t *thread) {
	in := t.state.InFlight
	if f := t.flight; f != nil && (in == nil || in.ID != f.ID) {
		c.drop(t, f, "another process has had the thread meanwhile")
	}
	if t.flight == nil && in != nil && in.Result != nil {
		c.inherit(t, *in)
		return
	}
	c.foreign(t)
}

func (c *Compactor) read(t *thread) error {
	s, rev, err := c.conf().Store.Load(t.id)
	if err != nil {
		return err
	}
	t.state, t.rev, t.loaded, t.summary = s, rev, true, nil
	return nil
}

// takeOver inherits what was under way when the thread was loaded: a process that runs the thread is the only one that does.
func (c *Compactor) takeOver(t *thread) {
	if f := t.state.InFlight; t.found && t.flight == nil && f != nil {
		c.inherit(t, *f)
	}
	t.found = false
}

// inherit takes over a compaction that a process before this one had under way.
// What its summarizer had answered is not paid for twice: it is swapped in when
// the log is at hand. What it had not answered is cleared and counts as a failure,
// so that it is tried again, but not for ever.
func (c *Compactor) inherit(t *thread, f InFlight) {
	reason := fmt.Sprintf("attempt %d was under way when its process ended", f.Attempt)
	if f.Result != nil {
		reason += "; its summary is there and is swapped in"
		t.flight = &flight{InFlight: f, orphan: true, main: true, started: time.UnixMilli(f.StartedMS), deadline: c.conf().Now()}
	} else {
		reason += "; it is tried again"
		c.clear(t, reason, func(s *State) {
			s.Failures++
			s.LastFail = c.conf().Now()
		})
	}
	c.observe(t, Event{
		Kind: EventRecovered, TaskID: f.ID, AttemptID: f.ID, Attempt: f.Attempt, Policy: f.Policy,
		FromID: f.Range.FromID, ToID: f.Range.ToID, PreTokens: f.Before, Reason: reason,
	})
}

// commit changes the state in the store, and then here. When another process has
// changed it meanwhile, it is read again, and the change is made to what was read
// if still reports that it applies.
func (c *Compactor) commit(t *thread, still func(*State) bool, change func(*State)) error {
	for range 3 {
		next := t.state.clone()
		change(&next)
		rev, err := c.conf().Store.Swap(t.id, t.rev, next)
		if err == nil {
			t.state, t.rev = next, rev
			return nil
		}
		if !errors.Is(err, ErrConflict) {
			return err
		}
		if err := c.read(t); err != nil {
			return err
		}
		if !still(&t.state) {
			return ErrConflict
		}
	}
	return ErrConflict
}

// clear ends whatever is under way. If the store does not take it, the next
// process finds the reservation, and clears it then.
func (c *Compactor) clear(t *thread, reason string, change func(*State)) {
	id := ""
	if f := t.state.InFlight; f != nil {
		id = f.ID
	}
	end := func(s *State) {
		if s.InFlight != nil && s.InFlight.ID == id {
			s.InFlight = nil
		}
		change(s)
	}
	if err := c.commit(t, func(*State) bool { return true }, end); err != nil {
		end(&t.state)
		c.conf().Logger.Warn("the end of a compaction could not be stored", "thread_id", t.id, "reason", reason, "error", err)
	}
}

// holds reports whether the state still has a reservation.
func holds(id string) func(*State) bool {
	return func(s *State) bool { return s.InFlight != nil && s.InFlight.ID == id }
}

// foreign reports whether another process has a compaction of the thread under way.
// One that is past its deadline is inherited, and so is one of this process whose
// reservation landed although the store reported an error.
func (c *Compactor) foreign(t *thread) bool {
	f := t.state.InFlight
	if f == nil || t.flight != nil {
		return false
	}
	if f.Owner != c.conf().Owner && c.conf().Now().UnixMilli() <= f.DeadlineMS {
		return true
	}
	held := *f
	c.inherit(t, held)
	return t.flight != nil
}
