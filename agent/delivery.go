package agent

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/inbox"
)

// Delivery is notifications that were taken from a store. inbox.Delivery is one.
type Delivery interface {
	// All yields what was taken, oldest first. The key of a notification is its own, and the
	// same when it is delivered again.
	All() iter.Seq2[string, abi.Notice]
	// Done acknowledges these: they were used, and are durable where they were used. They are never delivered
	// again. On an error they may be.
	Done(ctx context.Context, keys ...string) error
	// Release gives back what is not done.
	Release()
}

// hand is what a run has taken. A run has one delivery in hand at a time.
type hand struct {
	delivery Delivery
	// keys of what the log has, or needs not have.
	keys []string
	// answered reports that nothing of it waits for the model any more. The next
	// checkpoint has that, and then they are done.
	answered bool
}

// item is a notification on its way to the log. Key is empty if it came by Deliver.
type item struct {
	key    string
	notice abi.Notice
}

// take takes the stored notifications of the thread, unless the run has not answered what it
// took before, and reports whether the model has something new to read. What
// cannot be taken stays.
func (r *run) take(ctx context.Context) (arrived bool) {
	if r.cfg.Take == nil || r.hand != nil {
		return false
	}
	var d Delivery
	err := recovered(func() (err error) {
		d, err = r.cfg.Take(ctx, r.thread.id)
		return err
	})
	if err != nil {
		r.cfg.Logger.WarnContext(ctx, "notifications cannot be taken, and stay", "thread_id", r.thread.id, "error", err)
		return false
	}
	r.thread.notePoll()
	r.hand = &hand{delivery: d}
	var fresh []item
	known := r.thread.known(d.All())
	for key, n := range d.All() {
		answered, again := known[key]
		if !again {
			fresh = append(fresh, item{key, n})
			continue
		}
		// An earlier run wrote it to the log, and ended before it acknowledged it.
		r.hand.keys = append(r.hand.keys, key)
		arrived = arrived || !answered
	}
	readable := r.receive(fresh, false)
	r.hand.answered = !arrived && !readable
	if len(r.hand.keys) == 0 {
		r.giveBack()
	}
	return arrived || readable
}

// receive passes notifications on: to the compactor, to the plugins, to the log.
// It reports whether the model has something new to read. What the text of one message
// does not cover is left, or with all put into further messages.
func (r *run) receive(list []item, all bool) (arrived bool) {
	if len(list) == 0 {
		return false
	}
	var rest []item
	for _, i := range list {
		switch {
		case r.agent.consume(r.thread, i.notice):
			r.context.shown = nil // the view is another one: what plugins want shown is due again
		case i.notice.Housekeeping:
			r.notices = append(r.notices, i.notice)
		default:
			rest = append(rest, i)
			continue
		}
		r.settled(false, i)
	}
	for len(rest) > 0 {
		messages, used := r.worded(rest)
		for _, i := range rest[:used] {
			r.notices = append(r.notices, i.notice)
		}
		r.thread.append(messages...)
		r.settled(true, rest[:used]...)
		arrived = arrived || len(messages) > 0
		next := rest[used:]
		if len(next) > 0 && !all && rest[used-1].notice.Kind != abi.NoticeMessages && next[0].notice.Kind != abi.NoticeMessages {
			break // they did not fit
		}
		rest = next
	}
	r.refresh()
	return arrived
}

// settled notes which of the notifications in hand were used, and whether the log has them.
func (r *run) settled(logged bool, list ...item) {
	for _, i := range list {
		if i.key == "" {
			continue
		}
		r.hand.keys = append(r.hand.keys, i.key)
		if logged {
			r.thread.markLogged(i.key)
		}
	}
}

// read notes that the model has answered the notifications in hand, or is not going to.
func (r *run) read() {
	if r.hand != nil {
		r.hand.answered = true
		r.thread.markAnswered(r.hand.keys)
	}
}

// done returns what the next checkpoint acknowledges: the notifications in hand, when they were answered.
func (r *run) done() *hand {
	if r.hand == nil || !r.hand.answered {
		return nil
	}
	return r.hand
}

// acknowledged follows a checkpoint that acknowledges what is in hand: where the checkpoint did, nothing is left to do.
func (r *run) acknowledged(ctx context.Context) {
	err := recovered(func() error { return r.hand.delivery.Done(ctx, r.hand.keys...) })
	if err != nil {
		r.cfg.Logger.WarnContext(ctx, "notifications that were used are delivered again", "thread_id", r.thread.id, "error", err)
	} else {
		r.thread.forget(r.hand.keys)
	}
	r.giveBack()
}

// giveBack releases what the run has in hand and is not done.
func (r *run) giveBack() {
	if r.hand == nil {
		return
	}
	if err := recovered(func() error { r.hand.delivery.Release(); return nil }); err != nil {
		r.cfg.Logger.Error("notifications cannot be released", "thread_id", r.thread.id, "error", err)
	}
	r.hand = nil
}

// deliberate reports whether a run that ends before the model has read the notifications in hand was ended on
// purpose. Then the log has them, and no run is woken for them again. A
// run that failed, or whose process ends, releases them.
func (t Termination) deliberate(ctx context.Context) bool {
	switch t.Type {
	case Stopped, Blocked, Suspended:
		return true
	case Cancelled:
		return errors.Is(context.Cause(ctx), ErrCancelled)
	default:
		return false
	}
}

// settleStored gives the compactor of an idle thread its stored notifications. Others
// stay.
func (a *Agent) settleStored(ctx context.Context, t *Thread) {
	if a.cfg.Take == nil {
		return
	}
	err := recovered(func() error {
		d, err := a.cfg.Take(ctx, t.id)
		if err != nil {
			return err
		}
		defer d.Release()
		var keys []string
		for key, n := range d.All() {
			if a.consume(t, n) {
				keys = append(keys, key)
			}
		}
		return d.Done(ctx, keys...)
	})
	if err != nil {
		a.cfg.Logger.WarnContext(ctx, "compactions of an idle thread are not settled yet", "thread_id", t.id, "error", err)
	}
}

// words makes one text of notifications, and returns how many of them it covers, one at least.
func (r *run) words(list []abi.Notice) (text string, used int) {
	err := recovered(func() error {
		text, used = r.cfg.Words(list)
		if used < 1 || used > len(list) {
			return fmt.Errorf("the text covers %d of %d notifications", used, len(list))
		}
		return nil
	})
	if err != nil {
		r.cfg.Logger.Error("notifications are rendered by the default", "thread_id", r.thread.id, "error", err)
		text, used = inbox.Events(list, 0)
	}
	return text, used
}

// markLogged notes that the log has the notification of that key.
func (t *Thread) markLogged(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken[key] = false
}

// markAnswered notes that notifications which the log has were answered.
func (t *Thread) markAnswered(keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range keys {
		if _, ok := t.taken[k]; ok {
			t.taken[k] = true
		}
	}
}

// forget drops keys of notifications that are never delivered again.
func (t *Thread) forget(keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range keys {
		delete(t.taken, k)
	}
}

// maxTaken is how many keys of notifications a thread remembers that may never come again.
const maxTaken = 1000

// known returns which of the notifications the log has, and whether the model has answered them. A key that
// does not come may belong to another process, whose queue delivers it when that process is back; one that
// was acknowledged just before its process ended never comes. So keys are kept until there are too many.
func (t *Thread) known(list iter.Seq2[string, abi.Notice]) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.taken) > maxTaken {
		still := make(map[string]bool)
		for key := range list {
			if answered, ok := t.taken[key]; ok {
				still[key] = answered
			}
		}
		t.taken = still
	}
	return maps.Clone(t.taken)
}

// Wake has a thread poll its stored notifications, and returns when
// it has, or when ctx is done: its run resumes if it waits, and else polls
// after its step. Without a run, or when that ends before, one begins, which
// calls no model if there are no notifications; the error is that of this run. It is for
// Inbox.Start of package inbox.
func (a *Agent) Wake(ctx context.Context, thread string) error {
	t := a.Thread(thread)
	polled := t.nextPoll()
	for {
		live := t.control()
		if live == nil {
			_, err := a.Run(ctx, Request{ThreadID: thread, Mode: abi.RunInternalWake})
			if errors.Is(err, ErrThreadBusy) {
				continue
			}
			return err
		}
		t.nudge()
		select {
		case <-polled:
			return nil
		case <-ctx.Done():
			return nil
		case <-live.done:
		}
		select {
		case <-polled:
			return nil
		default:
		}
	}
}

// nextPoll is closed when a run polls for notifications the next time.
func (t *Thread) nextPoll() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.polled
}

// notePoll notes that a run polls for notifications.
func (t *Thread) notePoll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.polled)
	t.polled = make(chan struct{})
}

// nudge wakes a run that waits.
func (t *Thread) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
