package mailbox_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// flaky is a store that fails to add events: it does not add them, or adds them and returns an error.
type flaky struct {
	*memstore.Store

	fail func(n int) (before, after bool)
	mu   sync.Mutex
	n    int
}

func (f *flaky) AppendEvents(ctx context.Context, list ...store.EventBatch) ([]string, error) {
	f.mu.Lock()
	f.n++
	before, after := f.fail(f.n)
	f.mu.Unlock()
	if before {
		return nil, errors.New("not added")
	}
	refused, err := f.Store.AppendEvents(ctx, list...)
	if after {
		return nil, errors.New("added, and the answer was lost")
	}
	return refused, err
}

// TestSharedEventsSurviveFaults holds that a reader elsewhere gets each event once and in order, whatever adding them
// says.
func TestSharedEventsSurviveFaults(t *testing.T) {
	t.Parallel()
	for name, fail := range map[string]func(n int) (before, after bool){
		"not_added":    func(n int) (bool, bool) { return n%3 != 0, false },
		"not_heard_of": func(n int) (bool, bool) { return false, n%3 != 0 },
		"both":         func(n int) (bool, bool) { return n%4 == 1, n%4 == 2 },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				mem := &flaky{Store: memstore.New(), fail: fail}
				run := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
					for i := range 40 {
						j.Emit("n", fmt.Append(nil, i))
						if i%5 == 0 {
							time.Sleep(100 * time.Millisecond)
						}
					}
					return mailbox.Result{Termination: "natural"}, nil
				}}
				worker := open(t, mailbox.Config{Store: mem, Runtime: run})
				reader := open(t, mailbox.Config{Store: mem, Runtime: run})
				sub, err := worker.Submit(t.Context(), request("t", "go"))
				must(t, err)
				time.Sleep(time.Minute) // it is over, and all that is to be added was
				got := read(t, reader, sub.Dispatch, 0)
				for i, e := range got[:len(got)-1] {
					if e != fmt.Sprintf("%d:%d", i+1, i) {
						t.Fatalf("event %d is %s", i, e)
					}
				}
				equal(t, "the last one", strings.Join(got[40:], " "), "41:acked")
				equal(t, "from a number", strings.Join(read(t, reader, sub.Dispatch, 39), " "), "40:39 41:acked")
			})
		})
	}
}

// read reads the events of a dispatch after a number, to the end.
func read(t *testing.T, m *mailbox.Mailbox, dispatch string, seq uint64) (out []string) {
	t.Helper()
	f, err := m.Attach(t.Context(), dispatch)
	must(t, err)
	for {
		e, err := f.Next(t.Context(), seq)
		if errors.Is(err, mailbox.ErrEnd) {
			return out
		}
		must(t, err)
		seq = e.Seq
		out = append(out, fmt.Sprintf("%d:%s", e.Seq, e.Data))
	}
}

// TestFeed_whileEventsAreDropped: a reader that is hardly slower than a run misses events, and gets no part of one that
// is dropped while it is read.
func TestFeed_whileEventsAreDropped(t *testing.T) {
	t.Parallel()
	attached := make(chan struct{})
	do := func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
		<-attached
		for i := range 20_000 {
			j.Emit("n", fmt.Append(nil, i+1))
		}
		return mailbox.Result{Termination: "natural"}, nil
	}
	m := started(t, mailbox.Config{Runtime: &script{do: do}, Events: mailbox.Events{Count: 2, Pause: -1}, Store: memstore.New()})
	f, err := m.Attach(t.Context(), background(t, m, request("t", "go")).Dispatch)
	must(t, err)
	close(attached)
	for seq := uint64(0); ; {
		e, err := f.Next(t.Context(), seq)
		var gap *mailbox.GapError
		switch {
		case errors.As(err, &gap):
			seq = gap.Next
			continue
		case errors.Is(err, mailbox.ErrEnd):
			return
		}
		must(t, err)
		if e.Seq <= seq || e.Type == "n" && string(e.Data) != fmt.Sprint(e.Seq) {
			t.Fatalf("after event %d comes %+v", seq, e)
		}
		seq = e.Seq
	}
}

// TestEventsOfALargeRun holds that more events than a batch takes, and larger ones, come in one piece elsewhere, but for those
// that are too large to be shared.
func TestEventsOfALargeRun(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		run := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
			for range 600 {
				j.Emit("small", []byte("x"))
			}
			for range 3 {
				j.Emit("large", make([]byte, 200<<10))
			}
			j.Emit("huge", make([]byte, 300<<10))
			return mailbox.Result{Termination: "natural"}, nil
		}}
		worker := open(t, mailbox.Config{Store: mem, Runtime: run})
		reader := open(t, mailbox.Config{Store: mem, Runtime: run})
		sub, err := worker.Submit(t.Context(), request("t", "go"))
		must(t, err)
		synctest.Wait()
		f, err := reader.Attach(t.Context(), sub.Dispatch)
		must(t, err)
		kinds := map[string]int{}
		seq, bytes := uint64(0), 0
		for {
			e, err := f.Next(t.Context(), seq)
			if errors.Is(err, mailbox.ErrEnd) {
				break
			}
			must(t, err)
			equal(t, "number", e.Seq, seq+1)
			seq = e.Seq
			kinds[e.Type]++
			bytes += len(e.Data)
		}
		equal(t, "events", fmt.Sprint(kinds), "map[large:3 mailbox_settled:1 mailbox_skipped:1 small:600]")
		equal(t, "bytes", bytes, 600+3*200<<10+len("huge")+len("acked"))
	})
}

// weighed is a store that knows its largest batch.
type weighed struct {
	*memstore.Store

	most atomic.Int64
}

func (w *weighed) AppendEvents(ctx context.Context, list ...store.EventBatch) ([]string, error) {
	for i := range list {
		w.most.Store(max(w.most.Load(), int64(len(list[i].Data))))
	}
	return w.Store.AppendEvents(ctx, list...)
}

// TestEventsWithLargeTypes holds that no type makes a batch that a store may refuse for its size, which would keep
// all events behind it back.
func TestEventsWithLargeTypes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := &weighed{Store: memstore.New()}
		run := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
			for range 8 {
				j.Emit(strings.Repeat("t", 300<<10), nil)
			}
			j.Emit("small", nil)
			return mailbox.Result{Termination: "natural"}, nil
		}}
		worker := open(t, mailbox.Config{Store: mem, Runtime: run})
		reader := open(t, mailbox.Config{Store: mem, Runtime: run})
		sub, err := worker.Submit(t.Context(), request("t", "go"))
		must(t, err)
		synctest.Wait()
		f, err := reader.Attach(t.Context(), sub.Dispatch)
		must(t, err)
		var kinds []string
		for seq := uint64(0); ; seq++ {
			e, err := f.Next(t.Context(), seq)
			if errors.Is(err, mailbox.ErrEnd) {
				break
			}
			must(t, err)
			kinds = append(kinds, e.Type)
			if e.Type == mailbox.EventSkipped && len(e.Data) != 256 {
				t.Errorf("%d bytes encode a type", len(e.Data))
			}
		}
		equal(t, "events", fmt.Sprint(kinds), fmt.Sprint(append(slices.Repeat([]string{mailbox.EventSkipped}, 8), "small", mailbox.EventSettled)))
		if most := mem.most.Load(); most == 0 || most > 1<<20 {
			t.Errorf("the largest batch has %d bytes", most)
		}
	})
}

// TestAttachAlone holds that a mailbox that shares nothing still has the events of its own executions, and the end of others.
func TestAttachAlone(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		said := make(chan struct{})
		run := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
			j.Emit("n", []byte("a"))
			<-said
			j.Emit("n", []byte("b"))
			return mailbox.Result{Termination: "natural"}, nil
		}}
		worker := open(t, mailbox.Config{Store: mem, Runtime: run, Events: mailbox.Events{Pause: -1}})
		reader := open(t, mailbox.Config{Store: mem, Runtime: run, Events: mailbox.Events{Pause: -1}})
		sub, err := worker.Submit(t.Context(), request("t", "go"))
		must(t, err)
		there := make(chan string)
		go func() { there <- strings.Join(read(t, reader, sub.Dispatch, 0), " ") }()
		time.Sleep(time.Minute)
		close(said)
		equal(t, "events here", strings.Join(read(t, worker, sub.Dispatch, 0), " "), "1:a 2:b 3:acked")
		equal(t, "events there", <-there, "1:acked")
	})
}

// TestFeedBehind: a feed counts the bytes that a reader has not read, of executions in its own process.
func TestFeedBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		mem := memstore.New()
		said, end := make(chan struct{}), make(chan struct{})
		run := &script{do: func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
			j.Emit("n", make([]byte, 1000))
			j.Emit("n", make([]byte, 1000))
			close(said)
			<-end
			return mailbox.Result{Termination: "natural"}, nil
		}}
		worker, reader := open(t, mailbox.Config{Store: mem, Runtime: run}), open(t, mailbox.Config{Store: mem, Runtime: run})
		sub, err := worker.Submit(t.Context(), request("t", "go"))
		must(t, err)
		<-said
		near, err := worker.Attach(t.Context(), sub.Dispatch)
		must(t, err)
		far, err := reader.Attach(t.Context(), sub.Dispatch)
		must(t, err)
		if all, one := near.Behind(0), near.Behind(1); all != 2*one || one < 1000 || near.Behind(2) != 0 || far.Behind(0) != 0 {
			t.Errorf("behind by %d, %d, %d, and %d elsewhere", all, one, near.Behind(2), far.Behind(0))
		}
		close(end)
	})
}

// TestJob_Commit_shares: what was sent before a commit is shared with it, so that a kill right after it loses no event that led
// to what is in the log.
func TestJob_Commit_shares(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		events := memstore.New()
		var shared []store.EventBatch
		do := func(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
			j.Emit("said", []byte("hello"))
			must(t, j.Commit(ctx, mailbox.Commit{ID: "c", From: j.Messages}))
			var err error
			shared, err = events.ReadEvents(ctx, j.Dispatch.ID, 0, 10, 0)
			must(t, err)
			return mailbox.Result{}, nil
		}
		m := started(t, mailbox.Config{Runtime: &script{do: do}, Store: events, Events: mailbox.Events{Pause: time.Hour}})
		background(t, m, request("t", "x"))
		sleep(0)
		if len(shared) != 1 || shared[0].First != shared[0].Last {
			t.Errorf("shared at the commit are %+v", shared)
		}
	})
}
