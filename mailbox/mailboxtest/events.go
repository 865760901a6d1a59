package mailboxtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// testEvents holds that readers in every process get a dispatch's events.
func testEvents(t *testing.T, open func(t *testing.T) (one, other store.Store)) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*eventWorld)
	}{
		{"dropped_with_the_thread", eventsDropped},
		{"followed_elsewhere", eventsFollowed},
		{"heir_continues", eventsOfAnHeir},
		{"gap_is_returned", eventsWithAGap},
		{"settled_comes_once_and_last", settledOnce},
		{"reader_of_a_former_holder", readerOfAFormerHolder},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			one, other := open(t)
			c.run(&eventWorld{world: newWorld(t, one), other: other})
		})
	}
}

// eventWorld is a store that two processes have open.
type eventWorld struct {
	*world

	other store.Store
}

func eventsDropped(w *eventWorld) {
	events, ok := w.store.(store.Events)
	if !ok {
		w.t.Fatal("the store has no events")
	}
	_, err := w.mail.SubmitBackground(w.ctx(), request("t", "d"))
	must(w.t, err)
	_, err = events.AppendEvents(w.ctx(), store.EventBatch{Stream: "d", Fence: 1, First: 1, Last: 1, At: w.clock.Now(), Data: []byte("x")})
	must(w.t, err)
	must(w.t, w.mail.Drop(w.ctx(), "t"))
	list, err := events.ReadEvents(w.ctx(), "d", 0, 10, 0)
	must(w.t, err)
	equal(w.t, "batches that are left", len(list), 0)
}

// speaker is a runtime that sends an event for each word it is given, and ends when there are no
// more, or fails when the last one is "fail".
type speaker struct{ words chan string }

func (s *speaker) Run(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
	for word := range s.words {
		if word == "fail" {
			return mailbox.Result{}, errors.New("failed")
		}
		j.Emit("word", []byte(word))
	}
	return mailbox.Result{Termination: "natural"}, nil
}

// box is a process. It is not started.
func (w *eventWorld) box(on store.Store, change ...func(*mailbox.Config)) (*mailbox.Mailbox, *speaker) {
	w.t.Helper()
	s := &speaker{words: make(chan string)}
	cfg := mailbox.Config{
		Store: on, Runtime: s, Now: w.clock.Now, Owner: w.id("owner"), Poll: 20 * time.Millisecond,
		Events: mailbox.Events{Pause: time.Millisecond},
		Lease:  mailbox.Lease{Duration: time.Hour, Renew: 50 * time.Minute, Skew: -1},
	}
	for _, f := range change {
		f(&cfg)
	}
	return w.world.box(cfg), s
}

func (w *eventWorld) submit(m *mailbox.Mailbox) mailbox.Submission {
	w.t.Helper()
	sub, err := m.Submit(w.ctx(), mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("hello")}}})
	must(w.t, err)
	return sub
}

func (w *eventWorld) attach(m *mailbox.Mailbox, dispatch string) *mailbox.Feed {
	w.t.Helper()
	f, err := m.Attach(w.ctx(), dispatch)
	must(w.t, err)
	return f
}

// next reads the event after seq.
func (w *eventWorld) next(f *mailbox.Feed, seq uint64) mailbox.Event {
	w.t.Helper()
	e, err := f.Next(w.ctx(), seq)
	must(w.t, err)
	return e
}

// rest reads a feed to its end.
func (w *eventWorld) rest(f *mailbox.Feed, seq uint64) string {
	w.t.Helper()
	var out []string
	for {
		e, err := f.Next(w.ctx(), seq)
		if errors.Is(err, mailbox.ErrEnd) {
			return strings.Join(out, " ")
		}
		must(w.t, err)
		if e.Seq <= seq {
			w.t.Fatalf("event %d after %d", e.Seq, seq)
		}
		seq = e.Seq
		out = append(out, string(e.Data))
	}
}

func eventsFollowed(w *eventWorld) {
	a, speaks := w.box(w.store)
	b, _ := w.box(w.other)
	if _, err := b.Attach(w.ctx(), "unknown"); !errors.Is(err, mailbox.ErrNotFound) {
		w.t.Errorf("attached to nothing: %v", err)
	}
	sub := w.submit(a)
	here, there := w.attach(a, sub.Dispatch), w.attach(b, sub.Dispatch)
	speaks.words <- "one"
	for _, f := range []*mailbox.Feed{here, there} {
		e := w.next(f, 0)
		equal(w.t, "first event", fmt.Sprint(e.Seq, " ", string(e.Data)), "1 one")
	}
	speaks.words <- "two"
	speaks.words <- "three"
	close(speaks.words)
	equal(w.t, "the rest elsewhere", w.rest(there, 1), "two three acked")
	equal(w.t, "the rest here", w.rest(here, 1), "two three acked")
	equal(w.t, "all, from the start", w.rest(w.attach(b, sub.Dispatch), 0), "one two three acked")
	equal(w.t, "from a number", w.rest(w.attach(b, sub.Dispatch), 2), "three acked")
}

// eventsOfAnHeir holds that a reader elsewhere continues with the process that takes over, that the numbers show it, and
// that what the former one sends late is refused.
func eventsOfAnHeir(w *eventWorld) {
	a, speaks := w.box(w.store)
	b, heir := w.box(w.other)
	sub := w.submit(a)
	f := w.attach(b, sub.Dispatch)
	speaks.words <- "one"
	speaks.words <- "two"
	equal(w.t, "second event", string(w.next(f, w.next(f, 0).Seq).Data), "two")
	w.clock.Add(2 * time.Hour)
	must(w.t, b.Start(w.ctx()))
	heir.words <- "three"
	e := w.next(f, 2)
	equal(w.t, "event of the heir", fmt.Sprint(e.Seq, " ", string(e.Data)), fmt.Sprint(uint64(2<<32+1), " three"))
	speaks.words <- "late"
	close(speaks.words)
	ctx, cancel := context.WithTimeout(w.ctx(), 10*time.Second)
	defer cancel()
	must(w.t, a.Close(ctx))
	heir.words <- "four"
	close(heir.words)
	equal(w.t, "the rest", w.rest(f, e.Seq), "four acked")
	c, _ := w.box(w.store)
	equal(w.t, "all", w.rest(w.attach(c, sub.Dispatch), 0), "one two three four acked")
	equal(w.t, "from a number of the former holder that was lost", w.rest(w.attach(c, sub.Dispatch), 77), "three four acked")
}

func eventsWithAGap(w *eventWorld) {
	a, speaks := w.box(w.store, func(c *mailbox.Config) { c.Events.Count = 3 })
	b, _ := w.box(w.other)
	sub := w.submit(a)
	f := w.attach(b, sub.Dispatch)
	for i := range 12 {
		speaks.words <- fmt.Sprint(i)
		if i%2 == 0 {
			w.next(f, uint64(i)) //nolint:gosec // it is in a batch of its own now
		}
	}
	close(speaks.words)
	w.rest(f, 11)
	late := w.attach(b, sub.Dispatch)
	var gap *mailbox.GapError
	e, err := late.Next(w.ctx(), 0)
	if !errors.As(err, &gap) || gap.Next < 6 {
		w.t.Fatalf("what was dropped comes as %v", err)
	}
	for gaps := 0; errors.As(err, &gap); gaps++ { // the holder may drop more meanwhile, of 12 events
		if gaps == 12 {
			w.t.Fatalf("a reader that continues from GapError.Next meets gap after gap: %v", err)
		}
		e, err = late.Next(w.ctx(), gap.Next)
	}
	must(w.t, err)
	equal(w.t, "event after the gap", fmt.Sprint(e.Seq, " ", string(e.Data)), fmt.Sprint(gap.Next+1, " ", gap.Next))
}
