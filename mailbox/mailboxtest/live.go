package mailboxtest

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

func liveCases() []testCase {
	return []testCase{{"holder_is_notified_of_what_concerns_its_claim", recalled}}
}

// recalled holds that a holder is notified of what another process changes, so that it renews its lease at once and finds why it is to end.
func recalled(w *world) {
	m := w.manual()
	for thread, change := range map[string]func(id string) error{
		"cancelled":   func(id string) error { _, err := w.mail.Cancel(w.ctx(), id); return err },
		"interrupted": func(id string) error { _, err := w.mail.Interrupt(w.ctx(), id); return err },
		"paused":      func(id string) error { _, err := w.mail.PauseThread(w.ctx(), id); return err },
	} {
		x := m.begin(thread, thread)
		must(w.t, change(thread))
		select {
		case <-x.ctx.Done():
		case <-time.After(25 * time.Second):
			w.t.Errorf("the holder of the thread that is %s was not notified", thread)
		}
	}
}

// steered is a runtime whose runs continue until one is given the word "end", and panic at the word "panic".
type steered struct {
	running chan string // its runs, as they begin
	end     chan struct{}
}

func (s *steered) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	s.running <- j.Run.ID
	select {
	case <-s.end:
		return mailbox.Result{Termination: "natural"}, nil
	case <-ctx.Done():
		return mailbox.Result{}, context.Cause(ctx)
	}
}

func (s *steered) Steer(_ context.Context, _, _ string, r mailbox.Request) bool {
	if len(r.Messages) == 0 {
		return false
	}
	switch string(r.Messages[0].Data) {
	case "panic":
		panic("the runtime is broken")
	case "end":
		close(s.end)
		return true
	default:
		return false
	}
}

// testLive holds that a run under way takes commands of its own process and of another one. A panic of the runtime refuses a command and
// harms nothing else: what was refused is queued, and the run continues and takes what comes next.
func testLive(t *testing.T, open func(t *testing.T) (one, other store.Store)) {
	t.Helper()
	one, other := open(t)
	w := newWorld(t, one)
	s := &steered{running: make(chan string, 4), end: make(chan struct{})}
	here := w.box(mailbox.Config{Store: one, Runtime: s})
	there := w.box(mailbox.Config{Store: other, Runtime: done{}, Waits: mailbox.Waits{Live: 30 * time.Second}})
	must(t, here.Start(w.ctx()))
	first := w.submit(here, "t")
	run := <-s.running
	send := func(from *mailbox.Mailbox, text string) mailbox.Submission {
		sub, err := from.SubmitLive(w.ctx(), mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte(text)}}}, run)
		must(t, err)
		return sub
	}
	for _, from := range []*mailbox.Mailbox{there, here} {
		for _, text := range []string{"panic", "refused"} {
			sub := send(from, text)
			equal(t, "taken by a run that refused it", sub.Dispatch == first.Dispatch, false)
			equal(t, "what was refused", w.load(sub.Dispatch).Status, mailbox.Queued)
			_, err := from.Cancel(w.ctx(), sub.Dispatch)
			must(t, err)
		}
	}
	sub := send(there, "end")
	equal(t, "dispatch that took the next command", sub.Dispatch, first.Dispatch)
	w.await(there, first.Dispatch, mailbox.Acked)
}
