package outbox_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/outbox"
)

func newOutbox(t *testing.T, cfg outbox.Config) *outbox.Outbox {
	t.Helper()
	o, err := outbox.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

func closeOutbox(t *testing.T, o *outbox.Outbox) {
	t.Helper()
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func deliver(t *testing.T, o *outbox.Outbox, n abi.Notice) {
	t.Helper()
	if err := o.Deliver(t.Context(), "a", n); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, o *outbox.Outbox) *outbox.Delivery {
	t.Helper()
	d, err := o.Take(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func completed(id, text string) abi.Notice {
	return abi.Notice{Kind: abi.NoticeCompleted, TaskID: id, Result: text}
}

func ids(d *outbox.Delivery) string {
	var out []string
	for _, n := range d.News() {
		out = append(out, n.TaskID)
	}
	return strings.Join(out, " ")
}

func TestNewNamesTheField(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]outbox.Config{
		"Depth": {Depth: -1}, "MaxEntry": {MaxEntry: -1}, "Debounce": {Debounce: -1}, "Retry": {Retry: -1}, "MaxRetry": {MaxRetry: -1}, "Lease": {Lease: -1},
	} {
		if _, err := outbox.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error is %v, want one that names %s", err, field)
		}
	}
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *outbox.Outbox){
		"news_stay_until_acknowledged": func(t *testing.T, o *outbox.Outbox) {
			t.Helper()
			for i := range 3 {
				deliver(t, o, completed(fmt.Sprint("t", i), "x"))
			}
			d := take(t, o)
			if ids(d) != "t0 t1 t2" || ids(take(t, o)) != "" || o.Waiting("a") != 3 {
				t.Fatalf("taken %q", ids(d))
			}
			if err := d.Ack(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			deliver(t, o, completed("t3", "x"))
			d.Release()
			d.Release()
			if err := d.Ack(t.Context(), 5); err != nil || o.Waiting("a") != 3 {
				t.Fatalf("a released delivery acknowledged something: %v, %d wait", err, o.Waiting("a"))
			}
			again := take(t, o)
			if ids(again) != "t1 t2 t3" {
				t.Fatalf("taken again %q", ids(again))
			}
			if err := again.Ack(t.Context(), 3); err != nil || o.Waiting("a") != 0 {
				t.Fatalf("%d wait, %v", o.Waiting("a"), err)
			}
			deliver(t, o, completed("t1", "again"))
			if ids(take(t, o)) != "" {
				t.Fatal("an acknowledged end came twice")
			}
		},
		"values_come_back": func(t *testing.T, o *outbox.Outbox) {
			t.Helper()
			deliver(t, o, abi.Notice{Kind: abi.NoticeCustom, TaskID: "t", EventType: "e", Payload: map[string]any{"i": int64(1) << 60, "f": 1.5, "l": []any{int64(1)}}})
			n := take(t, o).News()[0]
			p, _ := n.Payload.(map[string]any)
			l, _ := p["l"].([]any)
			if p["i"] != int64(1)<<60 || p["f"] != 1.5 || l[0] != int64(1) || n.EventType != "e" || n.At.IsZero() || n.Seq == 0 {
				t.Fatalf("news is %+v", n)
			}
		},
		"lease": func(t *testing.T, o *outbox.Outbox) {
			t.Helper()
			deliver(t, o, completed("t0", "x"))
			lost := take(t, o)
			<-time.After(outbox.DefaultLease)
			if ids(take(t, o)) != "t0" {
				t.Fatal("news that was taken and never answered is gone")
			}
			// The first reader comes back after all: what it used is used.
			if err := lost.Ack(t.Context(), 1); err != nil || o.Waiting("a") != 0 {
				t.Fatalf("%d wait, %v", o.Waiting("a"), err)
			}
		},
		"sizes": func(t *testing.T, o *outbox.Outbox) {
			t.Helper()
			if err := o.Deliver(t.Context(), "a", completed("t", strings.Repeat("x", outbox.DefaultMaxEntry))); !errors.Is(err, outbox.ErrTooLarge) {
				t.Fatalf("error is %v", err)
			}
			if err := o.Deliver(t.Context(), "", completed("t", "x")); err == nil {
				t.Fatal("news for nobody was accepted")
			}
			if o.Waiting("a") != 0 {
				t.Fatal("what was refused takes room")
			}
		},
		"more_than_one_take": func(t *testing.T, o *outbox.Outbox) {
			t.Helper()
			for i := range 600 {
				deliver(t, o, completed(fmt.Sprint("t", i), "x"))
			}
			got := 0
			for range 3 {
				got += len(take(t, o).News())
			}
			if got != 600 {
				t.Fatalf("%d of 600 were taken", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newOutbox(t, outbox.Config{})
				test(t, o)
				closeOutbox(t, o)
			})
		})
	}
}

func TestBackPressure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(t, outbox.Config{Depth: 2})
		deliver(t, o, completed("t0", "x"))
		deliver(t, o, completed("t1", "x"))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := o.Deliver(ctx, "a", completed("t2", "x")); !errors.Is(err, outbox.ErrFull) || !errors.Is(err, context.DeadlineExceeded) {
			t.Fatalf("error is %v", err)
		}
		sent := make(chan error, 2)
		go func() { sent <- o.Deliver(t.Context(), "a", completed("t3", "x")) }()
		synctest.Wait()
		if err := o.Deliver(t.Context(), "b", completed("t4", "x")); err != nil {
			t.Fatalf("a full thread stops another: %v", err)
		}
		if err := take(t, o).Ack(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		if err := <-sent; err != nil || o.Waiting("a") != 2 {
			t.Fatalf("%v, %d wait", err, o.Waiting("a"))
		}
		go func() { sent <- o.Deliver(t.Context(), "a", completed("t5", "x")) }()
		synctest.Wait()
		closeOutbox(t, o)
		if err := <-sent; !errors.Is(err, outbox.ErrClosed) {
			t.Fatalf("error is %v", err)
		}
		if err := o.Commit(t.Context(), "a", "t", []byte("r"), nil); !errors.Is(err, outbox.ErrClosed) {
			t.Fatalf("error is %v", err)
		}
	})
}

// wakes counts wakes by thread and when they came.
type wakes struct {
	mu sync.Mutex
	at []time.Duration
	t0 time.Time
}

func (w *wakes) wake(context.Context, string) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.at = append(w.at, time.Since(w.t0))
	return nil
}

func (w *wakes) times() []time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]time.Duration(nil), w.at...)
}

func TestWake(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *outbox.Outbox, *wakes){
		"many_ends_wake_once": func(t *testing.T, o *outbox.Outbox, w *wakes) {
			t.Helper()
			for i := range 100 {
				deliver(t, o, completed(fmt.Sprint("t", i), "x"))
			}
			<-time.After(500 * time.Millisecond)
			if got := w.times(); len(got) != 1 || got[0] != outbox.DefaultDebounce {
				t.Fatalf("woken at %v", got)
			}
		},
		"again_until_taken": func(t *testing.T, o *outbox.Outbox, w *wakes) {
			t.Helper()
			deliver(t, o, completed("t0", "x"))
			<-time.After(20 * time.Second)
			if got := fmt.Sprint(w.times()); got != "[50ms 1.05s 3.05s 7.05s 15.05s]" {
				t.Fatalf("woken at %s", got)
			}
			if err := take(t, o).Ack(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour)
			if n := len(w.times()); n != 5 {
				t.Fatalf("woken %d times more after it was taken", n-5)
			}
		},
		"housekeeping_wakes_nobody": func(t *testing.T, o *outbox.Outbox, w *wakes) {
			t.Helper()
			deliver(t, o, abi.Notice{Kind: abi.NoticeCompleted, TaskID: "t", Housekeeping: true})
			_ = take(t, o)
			<-time.After(3 * outbox.DefaultLease)
			if got := w.times(); len(got) != 0 {
				t.Fatalf("woken at %v", got)
			}
			if ids(take(t, o)) != "t" {
				t.Fatal("housekeeping is not delivered")
			}
		},
		"after_a_release": func(t *testing.T, o *outbox.Outbox, w *wakes) {
			t.Helper()
			deliver(t, o, completed("t0", "x"))
			d := take(t, o)
			<-time.After(time.Minute)
			d.Release()
			<-time.After(100 * time.Millisecond)
			if got := w.times(); len(got) != 1 || got[0] != time.Minute+outbox.DefaultDebounce {
				t.Fatalf("woken at %v", got)
			}
		},
		"after_a_lease": func(t *testing.T, o *outbox.Outbox, w *wakes) {
			t.Helper()
			deliver(t, o, completed("t0", "x"))
			_ = take(t, o)
			<-time.After(outbox.DefaultLease + time.Second/2)
			if got := w.times(); len(got) != 1 || got[0] != outbox.DefaultLease {
				t.Fatalf("woken at %v", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wakes{t0: time.Now()}
				o := newOutbox(t, outbox.Config{})
				o.Start(w.wake)
				test(t, o, w)
				closeOutbox(t, o)
			})
		})
	}
}

// TestWakeAfterRestart shows that what a process left behind wakes its thread in
// the next one, and that a wake that fails or panics is tried again.
func TestWakeAfterRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := outbox.NewMemory()
		first := newOutbox(t, outbox.Config{Store: store})
		deliver(t, first, completed("t0", "x"))
		_ = take(t, first) // and dies
		closeOutbox(t, first)
		var calls atomic.Int32
		woken := make(chan string, 1)
		next := newOutbox(t, outbox.Config{Store: store})
		<-time.After(time.Hour) // nobody is woken before the start
		next.Start(func(_ context.Context, thread string) error {
			switch calls.Add(1) {
			case 1:
				panic("no")
			case 2:
				return errors.New("no")
			default:
				woken <- thread
				return nil
			}
		})
		next.Start(func(context.Context, string) error { panic("a second start") })
		if thread := <-woken; thread != "a" || ids(take(t, next)) != "t0" || next.Waiting("a") != 1 {
			t.Fatalf("thread %q was woken", thread)
		}
		closeOutbox(t, next)
	})
}

// TestNoLostWake is the race of the automatic resume: ends come while the reader
// goes to sleep, reads, fails and is restarted. Whatever the order, the reader is
// woken until it has everything.
func TestNoLostWake(t *testing.T) {
	t.Parallel()
	for round := range 4 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			for range 500 {
				synctest.Test(t, func(t *testing.T) { lostWake(t) })
			}
		})
	}
}

func lostWake(t *testing.T) {
	t.Helper()
	bell := make(chan struct{}, 1)
	o := newOutbox(t, outbox.Config{
		Debounce: time.Millisecond, Retry: time.Hour, MaxRetry: 2 * time.Hour, // a wake that is lost shows
	})
	o.Start(func(context.Context, string) error {
		select {
		case bell <- struct{}{}:
		default:
		}
		return nil
	})
	start := time.Now()
	var wg sync.WaitGroup
	for s := range 3 {
		wg.Go(func() {
			for i := range 3 {
				if err := o.Deliver(t.Context(), "a", completed(fmt.Sprint(s, i), "x")); err != nil {
					t.Error(err)
				}
				if i == 1 {
					<-time.After(time.Millisecond)
				}
			}
		})
	}
	got := map[string]int{}
	for fails := 0; len(got) < 9; {
		<-bell
		d := take(t, o)
		fails++
		if fails%2 == 1 {
			d.Release() // the run failed
			continue
		}
		for _, n := range d.News() {
			got[n.TaskID]++
		}
		if err := d.Ack(t.Context(), 1000); err != nil {
			t.Fatal(err)
		}
	}
	wg.Wait()
	for id, n := range got {
		if n != 1 {
			t.Errorf("%s came %d times", id, n)
		}
	}
	if took := time.Since(start); took > time.Minute {
		t.Errorf("it took %s: a wake was lost", took)
	}
	closeOutbox(t, o)
}

// TestEndIsQueuedOnce ends one task from many goroutines with different outcomes:
// one of them wins, in the queue and in the record.
func TestEndIsQueuedOnce(t *testing.T) {
	t.Parallel()
	for range 2000 {
		synctest.Test(t, func(t *testing.T) {
			o := newOutbox(t, outbox.Config{})
			var wg sync.WaitGroup
			for i := range 4 {
				wg.Go(func() {
					n := completed("t", fmt.Sprint(i))
					if err := o.Commit(t.Context(), "a", "t", fmt.Append(nil, i), &n); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			news := take(t, o).News()
			records, err := o.Records(t.Context(), "a")
			if err != nil || len(news) != 1 || news[0].Result != string(records["t"]) || o.Waiting("a") != 1 {
				t.Fatalf("%d ends, record %q, news %+v", len(news), records["t"], news)
			}
			closeOutbox(t, o)
		})
	}
}

// failing is a store that fails now and then.
type failing struct {
	outbox.Store

	n atomic.Int32
}

func (f *failing) Append(ctx context.Context, c outbox.Change) (uint64, error) {
	if f.n.Add(1)%3 == 0 {
		return 0, errors.New("disk full")
	}
	return f.Store.Append(ctx, c)
}

func (f *failing) Remove(ctx context.Context, thread string, seqs ...uint64) error {
	if f.n.Add(1)%2 == 0 {
		return errors.New("disk full")
	}
	return f.Store.Remove(ctx, thread, seqs...)
}

func TestFailingStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newOutbox(t, outbox.Config{Store: &failing{Store: outbox.NewMemory()}, Depth: 20})
		accepted := 0
		for i := range 20 {
			switch err := o.Deliver(t.Context(), "a", completed(fmt.Sprint(i), "x")); {
			case err == nil:
				accepted++
			case !strings.Contains(err.Error(), `outbox: thread "a": disk full`):
				t.Fatalf("error is %v", err)
			}
		}
		if accepted != 14 || o.Waiting("a") != accepted {
			t.Fatalf("%d accepted, %d wait", accepted, o.Waiting("a"))
		}
		acked := 0
		for range 100 {
			d := take(t, o)
			n := len(d.News())
			if d.Ack(t.Context(), 1) == nil && n > 0 {
				acked++
			}
			d.Release()
		}
		if acked != accepted || o.Waiting("a") != 0 {
			t.Fatalf("%d of %d were acknowledged, %d wait", acked, accepted, o.Waiting("a"))
		}
		closeOutbox(t, o)
	})
}

// TestUnreadableEntry has an entry in the store that is no notice: it is delivered
// as what it is, and can be acknowledged.
func TestUnreadableEntry(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		store := outbox.NewMemory()
		if _, err := store.Append(t.Context(), outbox.Change{Thread: "a", Data: []byte("{broken")}); err != nil {
			t.Fatal(err)
		}
		woken := make(chan string, 1)
		o := newOutbox(t, outbox.Config{Store: store})
		o.Start(func(_ context.Context, thread string) error { woken <- thread; return nil })
		<-woken
		d := take(t, o)
		if news := d.News(); len(news) != 1 || news[0].EventType != "unreadable_entry" {
			t.Fatalf("news is %+v", news)
		}
		if err := d.Ack(t.Context(), 1); err != nil || o.Waiting("a") != 0 {
			t.Fatalf("%d wait, %v", o.Waiting("a"), err)
		}
		closeOutbox(t, o)
	})
}
