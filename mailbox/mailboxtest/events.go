package mailboxtest

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// TestEvents proves the event log of a store that has one. Open opens one store twice, as two processes
// do.
func TestEvents(t *testing.T, open func(t *testing.T) (one, other mailbox.Store)) {
	t.Helper()
	for _, c := range []struct {
		name string
		run  func(*eventWorld)
	}{
		{"in_order", eventsInOrder},
		{"refused", eventsRefused},
		{"bounded", eventsBounded},
		{"purged", eventsPurged},
		{"awaited", eventsAwaited},
		{"dropped_with_the_thread", eventsDropped},
		{"followed_elsewhere", eventsFollowed},
		{"heir_goes_on", eventsOfAnHeir},
		{"gap_is_told", eventsWithAGap},
		{"settled_comes_once_and_last", settledOnce},
		{"reader_of_a_former_holder", readerOfAFormerHolder},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			one, other := open(t)
			a, shares := one.(mailbox.EventLog)
			b, also := other.(mailbox.EventLog)
			if !shares || !also {
				return // an optional ability
			}
			c.run(&eventWorld{world: newWorld(t, one), a: a, b: b, other: other})
		})
	}
}

// eventWorld is a store that two processes have open.
type eventWorld struct {
	*world

	a, b  mailbox.EventLog
	other mailbox.Store
}

func (w *eventWorld) batch(fence, first, last uint64) mailbox.EventBatch {
	return mailbox.EventBatch{
		Stream: "d", Fence: fence, First: first, Last: last, At: w.clock.Now(), Data: fmt.Appendf(nil, "%d: %d to %d", fence, first, last),
	}
}

// append adds batches, and says what was refused.
func (w *eventWorld) append(list ...mailbox.EventBatch) []string {
	w.t.Helper()
	refused, err := w.a.AppendEvents(w.ctx(), list...)
	must(w.t, err)
	return refused
}

// read reads from the other process.
func (w *eventWorld) read(dispatch string, after uint64, limit int) (out []string) {
	w.t.Helper()
	list, err := w.b.ReadEvents(w.ctx(), dispatch, after, limit, 0)
	must(w.t, err)
	for _, b := range list {
		if want := fmt.Sprintf("%d: %d to %d", b.Fence, b.First, b.Last); string(b.Data) != want || b.Stream != dispatch {
			w.t.Errorf("batch %s of %s has %q", want, b.Stream, b.Data)
		}
		out = append(out, string(b.Data))
	}
	return out
}

func eventsInOrder(w *eventWorld) {
	same(w.t, "nothing", w.read("d", 0, 10))
	other := w.batch(4, 1, 9)
	other.Stream = "e"
	same(w.t, "refused", w.append(w.batch(1, 1, 2), other))
	same(w.t, "refused", w.append(w.batch(1, 3, 3)))
	same(w.t, "refused", w.append(w.batch(3, 3<<32+1, 3<<32+7)))
	same(w.t, "all", w.read("d", 0, 10), "1: 1 to 2", "1: 3 to 3", fmt.Sprintf("3: %d to %d", uint64(3<<32+1), uint64(3<<32+7)))
	same(w.t, "from the middle of a batch", w.read("d", 1, 2), "1: 1 to 2", "1: 3 to 3")
	same(w.t, "from the end of one", w.read("d", 2, 1), "1: 3 to 3")
	same(w.t, "from the end", w.read("d", 3<<32+7, 10))
	same(w.t, "of another dispatch", w.read("e", 0, 10), "4: 1 to 9")
}

func eventsRefused(w *eventWorld) {
	same(w.t, "refused", w.append(w.batch(2, 1, 3)))
	same(w.t, "refused of what came before", w.append(w.batch(2, 1, 3)))
	same(w.t, "refused of what overlaps", w.append(w.batch(2, 3, 5)), "d")
	same(w.t, "refused of a former holder", w.append(w.batch(1, 4, 5)), "d")
	free := w.batch(1, 1, 1)
	free.Stream = "e"
	same(w.t, "refused of two", w.append(w.batch(1, 9, 9), free), "d")
	refused, err := w.b.AppendEvents(w.ctx(), w.batch(5, 5<<32+1, 5<<32+1)) // an heir in the other process
	must(w.t, err)
	same(w.t, "refused of the heir", refused)
	same(w.t, "refused of who has an heir", w.append(w.batch(2, 4, 4)), "d")
	same(w.t, "what is there", w.read("d", 0, 10), "2: 1 to 3", fmt.Sprintf("5: %d to %d", uint64(5<<32+1), uint64(5<<32+1)))
	same(w.t, "what is there of the other", w.read("e", 0, 10), "1: 1 to 1")
}

func eventsBounded(w *eventWorld) {
	for i := range uint64(5) {
		same(w.t, "refused", w.append(w.batch(1, 10*i+1, 10*i+10)))
	}
	b := w.batch(1, 51, 60)
	b.Keep = 31
	same(w.t, "refused", w.append(b))
	same(w.t, "kept", w.read("d", 0, 10), "1: 31 to 40", "1: 41 to 50", "1: 51 to 60")
	must(w.t, w.a.PurgeEvents(w.ctx(), w.clock.Now().Add(-time.Hour)))
	equal(w.t, "batches that are young", len(w.read("d", 0, 10)), 3)
}

// Only what is old is dropped, and the numbers go on.
func eventsPurged(w *eventWorld) {
	must(w.t, w.a.PurgeEvents(w.ctx(), w.clock.Now()))
	same(w.t, "refused", w.append(w.batch(1, 1, 2)))
	same(w.t, "refused", w.append(w.batch(1, 3, 3)))
	must(w.t, w.b.PurgeEvents(w.ctx(), w.clock.Now().Add(-25*time.Hour)))
	equal(w.t, "batches that are young", len(w.read("d", 0, 10)), 2)
	late := w.clock.Now() // some stores take the times of a server
	if now := time.Now(); now.After(late) {
		late = now
	}
	must(w.t, w.b.PurgeEvents(w.ctx(), late.Add(time.Hour)))
	same(w.t, "what is left", w.read("d", 0, 10))
	same(w.t, "refused", w.append(w.batch(1, 4, 5)))
	same(w.t, "what came then", w.read("d", 3, 10), "1: 4 to 5")
}

func eventsAwaited(w *eventWorld) {
	got := make(chan int)
	for range 2 {
		go func() {
			list, err := w.b.ReadEvents(w.ctx(), "d", 2, 10, time.Minute)
			if err != nil {
				w.t.Error(err)
			}
			got <- len(list)
		}()
	}
	same(w.t, "refused", w.append(w.batch(1, 1, 2)))
	same(w.t, "refused", w.append(w.batch(1, 3, 4)))
	equal(w.t, "batches that were awaited", <-got+<-got, 2)
	ctx, cancel := context.WithCancel(w.ctx())
	cancel()
	if _, err := w.b.ReadEvents(ctx, "d", 4, 10, time.Minute); !errors.Is(err, context.Canceled) {
		w.t.Errorf("read with a context that is over: %v", err)
	}
	list, err := w.b.ReadEvents(w.ctx(), "d", 4, 10, time.Millisecond)
	must(w.t, err)
	equal(w.t, "batches that did not come", len(list), 0)
}

func eventsDropped(w *eventWorld) {
	w.enqueue("t", "d")
	same(w.t, "refused", w.append(w.batch(1, 1, 2)))
	must(w.t, w.queue.Drop(w.ctx(), "t"))
	same(w.t, "what is left", w.read("d", 0, 10))
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
func (w *eventWorld) box(store mailbox.Store, change ...func(*mailbox.Config)) (*mailbox.Mailbox, *speaker) {
	w.t.Helper()
	s := &speaker{words: make(chan string)}
	cfg := mailbox.Config{
		Store: store, Runtime: s, Now: w.clock.Now, Owner: w.id("owner"), Poll: 20 * time.Millisecond, EventPause: time.Millisecond,
		Lease: time.Hour, Renew: 50 * time.Minute, Queue: mailbox.QueueConfig{Skew: -1}, // only the clock ends a lease
	}
	for _, f := range change {
		f(&cfg)
	}
	m, err := mailbox.New(w.ctx(), cfg)
	must(w.t, err)
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		if err := m.Close(ctx); err != nil {
			w.t.Error(err)
		}
	})
	return m, s
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
	a, said := w.box(w.store)
	b, _ := w.box(w.other)
	if _, err := b.Attach(w.ctx(), "nobody"); !errors.Is(err, mailbox.ErrNotFound) {
		w.t.Errorf("attached to nothing: %v", err)
	}
	sub := w.submit(a)
	here, there := w.attach(a, sub.Dispatch), w.attach(b, sub.Dispatch)
	said.words <- "one"
	for _, f := range []*mailbox.Feed{here, there} {
		e := w.next(f, 0)
		equal(w.t, "first event", fmt.Sprint(e.Seq, " ", string(e.Data)), "1 one")
	}
	said.words <- "two"
	said.words <- "three"
	close(said.words)
	equal(w.t, "the rest elsewhere", w.rest(there, 1), "two three acked")
	equal(w.t, "the rest here", w.rest(here, 1), "two three acked")
	equal(w.t, "all, from the start", w.rest(w.attach(b, sub.Dispatch), 0), "one two three acked")
	equal(w.t, "from a number", w.rest(w.attach(b, sub.Dispatch), 2), "three acked")
}

// eventsOfAnHeir holds that a reader elsewhere goes on with the process that takes over, that the numbers tell, and
// that what the former one says late is not heard.
func eventsOfAnHeir(w *eventWorld) {
	a, said := w.box(w.store)
	b, heir := w.box(w.other)
	sub := w.submit(a)
	f := w.attach(b, sub.Dispatch)
	said.words <- "one"
	said.words <- "two"
	equal(w.t, "second event", string(w.next(f, w.next(f, 0).Seq).Data), "two")
	w.clock.Add(2 * time.Hour)
	must(w.t, b.Start(w.ctx()))
	heir.words <- "three"
	e := w.next(f, 2)
	equal(w.t, "event of the heir", fmt.Sprint(e.Seq, " ", string(e.Data)), fmt.Sprint(uint64(2<<32+1), " three"))
	own, ok := b.Events(sub.Dispatch)
	equal(w.t, "events of the heir's own", ok, true)
	e, err := own.Next(w.ctx(), 0)
	must(w.t, err)
	equal(w.t, "the first one of the heir's own", string(e.Data), "three")
	said.words <- "late"
	close(said.words)
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
	a, said := w.box(w.store, func(c *mailbox.Config) { c.Events = 3 })
	b, _ := w.box(w.other)
	sub := w.submit(a)
	f := w.attach(b, sub.Dispatch)
	for i := range 12 {
		said.words <- fmt.Sprint(i)
		if i%2 == 0 {
			w.next(f, uint64(i)) //nolint:gosec // it is in a batch of its own now
		}
	}
	close(said.words)
	w.rest(f, 11)
	late := w.attach(b, sub.Dispatch)
	var gap *mailbox.GapError
	e, err := late.Next(w.ctx(), 0)
	if !errors.As(err, &gap) || !errors.Is(err, mailbox.ErrGap) || gap.Next < 6 {
		w.t.Fatalf("what was dropped comes as %v", err)
	}
	for gaps := 0; errors.As(err, &gap); gaps++ { // the holder may drop more meanwhile, of 12 events
		if gaps == 12 {
			w.t.Fatalf("a reader that goes on where it is told meets gap after gap: %v", err)
		}
		e, err = late.Next(w.ctx(), gap.Next)
	}
	must(w.t, err)
	equal(w.t, "event after the gap", fmt.Sprint(e.Seq, " ", string(e.Data)), fmt.Sprint(gap.Next+1, " ", gap.Next))
}
