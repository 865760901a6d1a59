package mailboxtest

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// mailboxLife is one life of a thread in a process that executes, asked for by another one.
type mailboxLife struct {
	*world

	thread      string
	worker      *worker
	here, there *mailbox.Mailbox
}

// insist asks until nothing fails by an injected fault.
func (l *mailboxLife) insist(what string, ask func(context.Context) error) {
	l.t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx(), 20*time.Second)
	defer cancel()
	for range 10 {
		err := ask(ctx)
		if err == nil {
			return
		}
		if !errors.Is(err, ErrInjected) && !errors.Is(err, mailbox.ErrUnknownOutcome) {
			l.t.Fatalf("%s: %s: %v", l.thread, what, err)
		}
	}
	l.t.Fatalf("%s: %s fails again and again", l.thread, what)
}

func (l *mailboxLife) request(word string) mailbox.Request {
	return mailbox.Request{Thread: l.thread, Key: word, Messages: []mailbox.Input{{ID: word, Data: []byte(strings.TrimRight(word, "0123456789"))}}}
}

func (l *mailboxLife) queued(word string) (sub mailbox.Submission) {
	l.t.Helper()
	l.insist("submit "+word, func(ctx context.Context) (err error) {
		sub, err = l.there.SubmitBackground(ctx, l.request(word))
		return err
	})
	return sub
}

// ended waits for the end of a dispatch.
func (l *mailboxLife) ended(sub mailbox.Submission, want mailbox.Status) {
	l.t.Helper()
	l.insist("await", func(ctx context.Context) error {
		d, err := l.there.Await(ctx, sub.Dispatch)
		if err == nil && d.Status != want {
			l.t.Fatalf("%s: dispatch is %s (attempts %d, last error %q), want %s", l.thread, d.Status, d.Attempts, d.LastError, want)
		}
		return err
	})
}

// play is the life.
func (l *mailboxLife) play() {
	l.t.Helper()
	l.ended(l.queued("work1"), mailbox.Acked)
	l.ended(l.queued("fail1"), mailbox.Acked)
	l.steered()
	l.ended(l.queued("wait1"), mailbox.Acked)
	l.ended(l.queued("work2"), mailbox.Acked) // the run continues
	l.replaced()
	l.buried()
	l.collected()
	l.checkRest()
}

// steered hands a message to a run under way, in the other process; it ends then.
func (l *mailboxLife) steered() {
	l.t.Helper()
	long := l.queued("long1")
	l.begun(long)
	var sub mailbox.Submission
	l.insist("submit live", func(ctx context.Context) (err error) {
		sub, err = l.there.SubmitLive(ctx, l.request("work3"), long.Run)
		return err
	})
	if sub.Dispatch != long.Dispatch { // it was not delivered, as far as anybody knows, and is queued
		l.worker.Steer(l.ctx(), long.Run, "", mailbox.Request{})
		l.ended(sub, mailbox.Acked)
	}
	l.ended(long, mailbox.Acked)
}

// begun waits until a dispatch is executed, and its message is in the log.
func (l *mailboxLife) begun(sub mailbox.Submission) {
	l.t.Helper()
	l.insist("attach", func(ctx context.Context) error {
		f, err := l.there.Attach(ctx, sub.Dispatch)
		if err != nil {
			return err
		}
		e, err := f.Next(ctx, 0)
		for err == nil && e.Type != "word" { // an attempt that failed comes before
			e, err = f.Next(ctx, e.Seq)
		}
		return err
	})
}

// replaced cancels what is queued behind a run, and lets a foreground request take its place.
func (l *mailboxLife) replaced() {
	l.t.Helper()
	long := l.queued("long2")
	l.begun(long)
	behind := l.queued("work4")
	l.insist("cancel", func(ctx context.Context) error {
		_, err := l.there.Cancel(ctx, behind.Dispatch)
		return err
	})
	var sub mailbox.Submission
	l.insist("submit in the foreground", func(ctx context.Context) (err error) {
		sub, err = l.here.Submit(ctx, l.request("work5"))
		return err
	})
	l.ended(behind, mailbox.Cancelled)
	l.ended(long, mailbox.Superseded)
	l.ended(sub, mailbox.Acked)
}

// buried makes a dead letter, finds it in the list, and gives it up.
func (l *mailboxLife) buried() {
	l.t.Helper()
	dead := l.queued("bury1")
	l.ended(dead, mailbox.DeadLetter)
	found := false
	l.insist("dead letters", func(ctx context.Context) error {
		list, err := l.there.DeadLetters(ctx, mailbox.Dispatch{}, 100)
		for i := range list {
			found = found || list[i].ID == dead.Dispatch
		}
		return err
	})
	equal(l.t, "a dead letter is listed", found, true)
	l.insist("discard", func(ctx context.Context) error { return l.there.Discard(ctx, dead.Dispatch) })
}

// collected drops what is old, of which there is nothing, and lists runs that wait.
func (l *mailboxLife) collected() {
	l.t.Helper()
	l.insist("gc", l.there.GC)
	l.insist("threads", func(ctx context.Context) error {
		_, err := l.there.Threads(ctx, mailbox.ThreadQuery{Wait: "user_input", Limit: 1})
		return err
	})
}

// checkRest checks what is left: each message once, and nothing queued or claimed.
func (l *mailboxLife) checkRest() {
	l.t.Helper()
	seen := map[string]int{}
	list, err := l.mail.Messages(l.ctx(), l.thread, 1, 100)
	must(l.t, err)
	for i := range list {
		seen[list[i].ID]++
	}
	for _, word := range []string{"work1", "fail1", "long1", "wait1", "work2", "long2", "work5", "bury1"} {
		equal(l.t, l.thread+": times that the log has "+word, seen[word], 1)
	}
	equal(l.t, l.thread+": times that the log has what was cancelled", seen["work4"], 0)
	h := l.record(l.thread)
	equal(l.t, l.thread+": queued", h.Queued, 0)
	equal(l.t, l.thread+": claimed", h.Claim != nil, false)
	equal(l.t, l.thread+": open run", h.Open.ID, "")
}
