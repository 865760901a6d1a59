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

// Delivery is news that was taken from where it is kept. inbox.Delivery is one.
type Delivery interface {
	// All yields what was taken, oldest first. The key of a notice is its own, and the
	// same when it comes again.
	All() iter.Seq2[string, abi.Notice]
	// Done says that these were used, and kept where they were used: they never come
	// again. On an error they may.
	Done(ctx context.Context, keys ...string) error
	// Release gives back what is not done.
	Release()
}

// hand is what a run has taken. A run has one delivery in hand at a time.
type hand struct {
	delivery Delivery
	// keys of what the log has, or needs not have.
	keys []string
	// answered says that nothing of it waits for the model any more. The next
	// checkpoint keeps that, and then the news are done.
	answered bool
}

// item is a notice on its way to the log. Key is empty if it was delivered.
type item struct {
	key    string
	notice abi.Notice
}

// take takes what is kept for the thread, unless the run has not answered what it
// took before, and says whether the model has something new to read. News that
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
		r.cfg.Logger.WarnContext(ctx, "news cannot be taken, and stays", "thread_id", r.thread.id, "error", err)
		return false
	}
	r.thread.look()
	r.hand = &hand{delivery: d}
	var fresh []item
	known := r.thread.known(d.All())
	for key, n := range d.All() {
		answered, again := known[key]
		if !again {
			fresh = append(fresh, item{key, n})
			continue
		}
		// An earlier run took it to the log, and did not come to say so.
		r.hand.keys = append(r.hand.keys, key)
		arrived = arrived || !answered
	}
	said := r.hear(fresh, false)
	r.hand.answered = !arrived && !said
	if len(r.hand.keys) == 0 {
		r.giveBack()
	}
	return arrived || said
}

// hear takes news to where it belongs: to the compactor, to the plugins, to the log.
// It says whether the model has something new to read. What the words of one message
// do not cover is left, or with all put into further messages.
func (r *run) hear(news []item, all bool) (arrived bool) {
	if len(news) == 0 {
		return false
	}
	var rest []item
	for _, i := range news {
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

// settled notes what was used of the news in hand, and whether the log has it.
func (r *run) settled(logged bool, news ...item) {
	for _, i := range news {
		if i.key == "" {
			continue
		}
		r.hand.keys = append(r.hand.keys, i.key)
		if logged {
			r.thread.took(i.key)
		}
	}
}

// read notes that the model has answered the news in hand, or is not going to.
func (r *run) read() {
	if r.hand != nil {
		r.hand.answered = true
		r.thread.read(r.hand.keys)
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
		r.cfg.Logger.WarnContext(ctx, "news that was used comes again", "thread_id", r.thread.id, "error", err)
	} else {
		r.thread.forget(r.hand.keys)
	}
	r.giveBack()
}

// giveBack lets go of what the run has in hand and is not done.
func (r *run) giveBack() {
	if r.hand == nil {
		return
	}
	if err := recovered(func() error { r.hand.delivery.Release(); return nil }); err != nil {
		r.cfg.Logger.Error("news cannot be given back", "thread_id", r.thread.id, "error", err)
	}
	r.hand = nil
}

// willed says of a run that ends before the model has read the news in hand whether
// that was somebody's will. Then the log has it, and nobody is woken for it again. A
// run that failed, or whose process ends, gives it back.
func (t Termination) willed(ctx context.Context) bool {
	switch t.Type {
	case Stopped, Blocked, Suspended:
		return true
	case Cancelled:
		return errors.Is(context.Cause(ctx), ErrCancelled)
	default:
		return false
	}
}

// settleKept lets the compactor of an idle thread have what is kept for it. Other news
// stays.
func (a *Agent) settleKept(ctx context.Context, t *Thread) {
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

// words makes one text of news, and says how many of them it covers, one at least.
func (r *run) words(news []abi.Notice) (text string, used int) {
	err := recovered(func() error {
		text, used = r.cfg.Words(news)
		if used < 1 || used > len(news) {
			return fmt.Errorf("the words cover %d of %d notices", used, len(news))
		}
		return nil
	})
	if err != nil {
		r.cfg.Logger.Error("news is worded plainly", "thread_id", r.thread.id, "error", err)
		text, used = inbox.Events(news, 0)
	}
	return text, used
}

// took notes that the log has the news of that key.
func (t *Thread) took(key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.taken[key] = false
}

// read notes that the news which the log has was answered.
func (t *Thread) read(keys []string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, k := range keys {
		if _, ok := t.taken[k]; ok {
			t.taken[k] = true
		}
	}
}

// forget drops news that never comes again.
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
func (t *Thread) known(news iter.Seq2[string, abi.Notice]) map[string]bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if len(t.taken) > maxTaken {
		still := make(map[string]bool)
		for key := range news {
			if answered, ok := t.taken[key]; ok {
				still[key] = answered
			}
		}
		t.taken = still
	}
	return maps.Clone(t.taken)
}

// Wake sees to it that a thread hears of news that is kept for it, and returns when
// it has, or when ctx is done: a run that it has goes on if it waits, and else takes
// the news after its step. Without a run, or when that ends before, one begins, which
// asks nobody if there is no news; the error is that of this run. It is for
// Inbox.Start of package inbox.
func (a *Agent) Wake(ctx context.Context, thread string) error {
	t := a.Thread(thread)
	heard := t.looked()
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
		case <-heard:
			return nil
		case <-ctx.Done():
			return nil
		case <-live.done:
		}
		select {
		case <-heard:
			return nil
		default:
		}
	}
}

// looked is closed when a run looks for news the next time.
func (t *Thread) looked() <-chan struct{} {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.heard
}

// look notes that a run looks for news.
func (t *Thread) look() {
	t.mu.Lock()
	defer t.mu.Unlock()
	close(t.heard)
	t.heard = make(chan struct{})
}

// nudge tells a run that waits to look around.
func (t *Thread) nudge() {
	select {
	case t.wake <- struct{}{}:
	default:
	}
}
