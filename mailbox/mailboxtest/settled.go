package mailboxtest

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// handover is a dispatch that failed in one process and was executed by another one, while the first one was stopped. Both have the
// dispatch's events, and both get to know that it is terminal.
type handover struct {
	former, heir *mailbox.Mailbox
	sub          mailbox.Submission
	// here reads in the former process, there in a third one: all events from the first one on.
	here, there func() []mailbox.Event
}

// handOver lets the former process send "failed" and the heir send words.
func (w *eventWorld) handOver(words ...string) handover {
	w.t.Helper()
	a, speaks := w.box(w.store, func(c *mailbox.Config) { c.Limits.Workers = 1 })
	b, heir := w.box(w.other, func(c *mailbox.Config) { c.Events.Pause = time.Hour }) // its end is in the log when it is closed
	c, _ := w.box(w.other)
	must(w.t, a.Start(w.ctx()))
	sub := w.submit(a)
	h := handover{former: a, heir: b, sub: sub, here: w.reads(w.attach(a, sub.Dispatch)), there: w.reads(w.attach(c, sub.Dispatch))}
	speaks.words <- "fail"
	close(speaks.words)
	next, err := a.SubmitBackground(w.ctx(), mailbox.Request{Thread: "next", Messages: []mailbox.Input{{Data: []byte("hello")}}})
	must(w.t, err)
	w.await(a, next.Dispatch, mailbox.Acked) // the only worker is free again: the execution that failed has ended
	must(w.t, a.Stop(w.ctx()))
	w.clock.Add(time.Minute)
	must(w.t, b.Start(w.ctx()))
	for _, word := range words {
		heir.words <- word
	}
	close(heir.words)
	w.await(b, sub.Dispatch, mailbox.Acked)
	must(w.t, a.Start(w.ctx()))
	return h
}

// reads reads a feed to its end in the background. The result waits for it.
func (w *eventWorld) reads(f *mailbox.Feed) func() []mailbox.Event {
	done := make(chan []mailbox.Event, 1)
	go func() {
		list, err := w.all(f, 0)
		if err != nil {
			w.t.Error(err)
		}
		done <- list
	}()
	return func() []mailbox.Event { return <-done }
}

// all reads a feed from a number to its end.
func (w *eventWorld) all(f *mailbox.Feed, seq uint64) (list []mailbox.Event, err error) {
	for {
		e, err := f.Next(w.ctx(), seq)
		if errors.Is(err, mailbox.ErrEnd) {
			return list, nil
		}
		if err != nil || e.Seq <= seq {
			return list, fmt.Errorf("event %d after %d: %w", e.Seq, seq, err)
		}
		seq = e.Seq
		list = append(list, e)
	}
}

func kindsOf(list []mailbox.Event) string {
	var kinds []string
	for _, e := range list {
		kinds = append(kinds, e.Type)
	}
	return strings.Join(kinds, " ")
}

// settledOnce holds that the end comes once, and after all else, when one process had a dispatch and another one settled it: for
// readers that were there meanwhile, for those that come later, and for those that come again from any number.
func settledOnce(w *eventWorld) {
	h := w.handOver()
	must(w.t, h.former.Close(w.ctx()))
	must(w.t, h.heir.Close(w.ctx()))
	late, _ := w.box(w.other)
	again, err := w.all(w.attach(late, h.sub.Dispatch), 0)
	must(w.t, err)
	for reader, list := range map[string][]mailbox.Event{"meanwhile": h.there(), "in the former process": h.here(), "late": again} {
		kinds := kindsOf(list)
		if strings.Count(kinds, mailbox.EventSettled) != 1 || !strings.HasSuffix(kinds, mailbox.EventSettled) || list[0].Type != mailbox.EventFailed {
			w.t.Errorf("a reader that came %s has %q", reader, kinds)
		}
		for i, e := range list {
			rest, err := w.all(w.attach(late, h.sub.Dispatch), e.Seq)
			must(w.t, err)
			if want := kindsOf(list[i+1:]); reader == "late" && kindsOf(rest) != want {
				w.t.Errorf("after event %d come %q, want %q", e.Seq, kindsOf(rest), want)
			}
			if ends := strings.Count(kindsOf(rest), mailbox.EventSettled); ends != min(len(list)-1-i, 1) {
				w.t.Errorf("a reader that came %s and comes again after event %d (%s) has %d ends", reader, e.Seq, e.Type, ends)
			}
		}
	}
}

// readerOfAFormerHolder holds that a reader in the process that had a dispatch before gets what the next one sends.
func readerOfAFormerHolder(w *eventWorld) {
	h := w.handOver("one", "two")
	list := h.here()
	equal(w.t, "events", kindsOf(list), strings.Join([]string{mailbox.EventFailed, "word", "word", mailbox.EventSettled}, " "))
	equal(w.t, "events in a third process", kindsOf(h.there()), kindsOf(list))
}
