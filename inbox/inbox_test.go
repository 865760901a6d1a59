package inbox_test

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
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

func newInbox(t *testing.T, cfg inbox.Config) *inbox.Inbox {
	t.Helper()
	if cfg.Store == nil {
		cfg.Store = memstore.New()
	}
	o, err := inbox.New(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	return o
}

// ack acknowledges the first n notifications of a delivery.
func ack(ctx context.Context, d *inbox.Delivery, n int) error {
	list := d.Notifications()
	var keys []string
	for i := range min(n, len(list)) {
		keys = append(keys, list[i].Key)
	}
	return d.Done(ctx, keys...)
}

// notices returns the notifications of a delivery for a renderer.
func notices(d *inbox.Delivery) (out []abi.Notice) {
	for _, n := range d.All() {
		out = append(out, n)
	}
	return out
}

func closeInbox(t *testing.T, o *inbox.Inbox) {
	t.Helper()
	if err := o.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func deliver(t *testing.T, o *inbox.Inbox, n abi.Notice) {
	t.Helper()
	if err := o.Deliver(t.Context(), "a", n); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, o *inbox.Inbox) *inbox.Delivery {
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

func ids(d *inbox.Delivery) string {
	var out []string
	for _, n := range d.Notifications() {
		out = append(out, n.TaskID)
	}
	return strings.Join(out, " ")
}

func TestNewNamesTheField(t *testing.T) {
	t.Parallel()
	for field, cfg := range map[string]inbox.Config{
		"Store": {}, "Depth": {Depth: -1}, "MaxEntry": {MaxEntry: -1}, "Debounce": {Debounce: -1}, "Retry": {Retry: -1}, "MaxRetry": {MaxRetry: -1}, "Lease": {Lease: -1},
	} {
		if field != "Store" {
			cfg.Store = memstore.New()
		}
		if _, err := inbox.New(t.Context(), cfg); err == nil || !strings.Contains(err.Error(), field) {
			t.Errorf("error is %v, want one that names %s", err, field)
		}
	}
}

func TestDelivery(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]func(*testing.T, *inbox.Inbox){
		"news_stay_until_acknowledged": func(t *testing.T, o *inbox.Inbox) {
			t.Helper()
			for i := range 3 {
				deliver(t, o, completed(fmt.Sprint("t", i), "x"))
			}
			d := take(t, o)
			if ids(d) != "t0 t1 t2" || ids(take(t, o)) != "" || o.Waiting("a") != 3 {
				t.Fatalf("taken %q", ids(d))
			}
			if err := ack(t.Context(), d, 1); err != nil {
				t.Fatal(err)
			}
			deliver(t, o, completed("t3", "x"))
			d.Release()
			d.Release()
			if err := ack(t.Context(), d, 5); err != nil || o.Waiting("a") != 3 {
				t.Fatalf("a released delivery acknowledged something: %v, %d wait", err, o.Waiting("a"))
			}
			again := take(t, o)
			if ids(again) != "t1 t2 t3" {
				t.Fatalf("taken again %q", ids(again))
			}
			if err := ack(t.Context(), again, 3); err != nil || o.Waiting("a") != 0 {
				t.Fatalf("%d wait, %v", o.Waiting("a"), err)
			}
			deliver(t, o, completed("t1", "again"))
			if ids(take(t, o)) != "" {
				t.Fatal("an acknowledged end came twice")
			}
		},
		"values_come_back": func(t *testing.T, o *inbox.Inbox) {
			t.Helper()
			deliver(t, o, abi.Notice{Kind: abi.NoticeCustom, TaskID: "t", EventType: "e", Payload: map[string]any{"i": int64(1) << 60, "f": 1.5, "l": []any{int64(1)}}})
			n := take(t, o).Notifications()[0]
			p, _ := n.Payload.(map[string]any)
			l, _ := p["l"].([]any)
			if p["i"] != int64(1)<<60 || p["f"] != 1.5 || l[0] != int64(1) || n.EventType != "e" || n.At.IsZero() || n.Seq == 0 {
				t.Fatalf("notifications are %+v", n)
			}
		},
		"lease": func(t *testing.T, o *inbox.Inbox) {
			t.Helper()
			deliver(t, o, completed("t0", "x"))
			lost := take(t, o)
			<-time.After(inbox.DefaultLease)
			if ids(take(t, o)) != "t0" {
				t.Fatal("what was taken and never answered is gone")
			}
			// The first reader comes back after all: what it used is used.
			if err := ack(t.Context(), lost, 1); err != nil || o.Waiting("a") != 0 {
				t.Fatalf("%d wait, %v", o.Waiting("a"), err)
			}
		},
		"sizes": func(t *testing.T, o *inbox.Inbox) {
			t.Helper()
			if err := o.Deliver(t.Context(), "a", completed("t", strings.Repeat("x", inbox.DefaultMaxEntry))); !errors.Is(err, inbox.ErrTooLarge) {
				t.Fatalf("error is %v", err)
			}
			if err := o.Deliver(t.Context(), "", completed("t", "x")); err == nil {
				t.Fatal("a notification without a thread was accepted")
			}
			if o.Waiting("a") != 0 {
				t.Fatal("what was refused takes room")
			}
		},
		"more_than_one_take": func(t *testing.T, o *inbox.Inbox) {
			t.Helper()
			for i := range 600 {
				deliver(t, o, completed(fmt.Sprint("t", i), "x"))
			}
			got := 0
			for range 3 {
				got += len(take(t, o).Notifications())
			}
			if got != 600 {
				t.Fatalf("%d of 600 were taken", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				o := newInbox(t, inbox.Config{})
				test(t, o)
				closeInbox(t, o)
			})
		})
	}
}

func TestBackPressure(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newInbox(t, inbox.Config{Depth: 2})
		deliver(t, o, completed("t0", "x"))
		deliver(t, o, completed("t1", "x"))
		start := time.Now()
		if err := o.Deliver(t.Context(), "a", completed("t2", "x")); !errors.Is(err, inbox.ErrFull) || time.Since(start) != 0 {
			t.Fatalf("error is %v after %s", err, time.Since(start))
		}
		if err := o.Deliver(t.Context(), "b", completed("t4", "x")); err != nil {
			t.Fatalf("a full thread stops another: %v", err)
		}
		if err := ack(t.Context(), take(t, o), 1); err != nil {
			t.Fatal(err)
		}
		if err := o.Deliver(t.Context(), "a", completed("t3", "x")); err != nil || o.Waiting("a") != 2 {
			t.Fatalf("%v, %d wait", err, o.Waiting("a"))
		}
		closeInbox(t, o)
		if err := o.Deliver(t.Context(), "a", completed("t5", "x")); !errors.Is(err, inbox.ErrClosed) {
			t.Fatalf("error is %v", err)
		}
		if err := o.Commit(t.Context(), "a", "t", []byte("r"), nil); !errors.Is(err, inbox.ErrClosed) {
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
	for name, test := range map[string]func(*testing.T, *inbox.Inbox, *wakes){
		"many_ends_wake_once": func(t *testing.T, o *inbox.Inbox, w *wakes) {
			t.Helper()
			for i := range 100 {
				deliver(t, o, completed(fmt.Sprint("t", i), "x"))
			}
			<-time.After(500 * time.Millisecond)
			if got := w.times(); len(got) != 1 || got[0] != inbox.DefaultDebounce {
				t.Fatalf("woken at %v", got)
			}
		},
		"again_until_taken": func(t *testing.T, o *inbox.Inbox, w *wakes) {
			t.Helper()
			deliver(t, o, completed("t0", "x"))
			<-time.After(20 * time.Second)
			if got := fmt.Sprint(w.times()); got != "[50ms 1.05s 3.05s 7.05s 15.05s]" {
				t.Fatalf("woken at %s", got)
			}
			if err := ack(t.Context(), take(t, o), 1); err != nil {
				t.Fatal(err)
			}
			<-time.After(time.Hour)
			if n := len(w.times()); n != 5 {
				t.Fatalf("woken %d times more after it was taken", n-5)
			}
		},
		"housekeeping_wakes_nobody": func(t *testing.T, o *inbox.Inbox, w *wakes) {
			t.Helper()
			deliver(t, o, abi.Notice{Kind: abi.NoticeCompleted, TaskID: "t", Housekeeping: true})
			_ = take(t, o)
			<-time.After(3 * inbox.DefaultLease)
			if got := w.times(); len(got) != 0 {
				t.Fatalf("woken at %v", got)
			}
			if ids(take(t, o)) != "t" {
				t.Fatal("housekeeping is not delivered")
			}
		},
		"after_a_release": func(t *testing.T, o *inbox.Inbox, w *wakes) {
			t.Helper()
			deliver(t, o, completed("t0", "x"))
			d := take(t, o)
			<-time.After(time.Minute)
			d.Release()
			<-time.After(100 * time.Millisecond)
			if got := w.times(); len(got) != 1 || got[0] != time.Minute+inbox.DefaultDebounce {
				t.Fatalf("woken at %v", got)
			}
		},
		"after_a_lease": func(t *testing.T, o *inbox.Inbox, w *wakes) {
			t.Helper()
			deliver(t, o, completed("t0", "x"))
			_ = take(t, o)
			<-time.After(inbox.DefaultLease + time.Second/2)
			if got := w.times(); len(got) != 1 || got[0] != inbox.DefaultLease {
				t.Fatalf("woken at %v", got)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				w := &wakes{t0: time.Now()}
				o := newInbox(t, inbox.Config{})
				o.Start(w.wake)
				test(t, o, w)
				closeInbox(t, o)
			})
		})
	}
}

// TestWakeAfterRestart shows that what a process left behind wakes its thread in
// the next one, and that a wake that fails or panics is tried again.
func TestWakeAfterRestart(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		kept := memstore.New()
		first := newInbox(t, inbox.Config{Store: kept})
		deliver(t, first, completed("t0", "x"))
		_ = take(t, first) // and dies
		closeInbox(t, first)
		var calls atomic.Int32
		woken := make(chan string, 1)
		next := newInbox(t, inbox.Config{Store: kept})
		<-time.After(time.Hour) // no thread is woken before the start
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
		closeInbox(t, next)
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
	o := newInbox(t, inbox.Config{
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
		for _, n := range d.Notifications() {
			got[n.TaskID]++
		}
		if err := ack(t.Context(), d, 1000); err != nil {
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
	closeInbox(t, o)
}

// TestEndIsQueuedOnce ends one task from many goroutines with different outcomes:
// one of them wins, in the queue and in the record.
func TestEndIsQueuedOnce(t *testing.T) {
	t.Parallel()
	for range 2000 {
		synctest.Test(t, func(t *testing.T) {
			o := newInbox(t, inbox.Config{})
			if err := o.Commit(t.Context(), "a", "t", []byte("begun"), nil); err != nil {
				t.Fatal(err)
			}
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
			list := take(t, o).Notifications()
			records, err := o.Records(t.Context(), "a")
			if err != nil || len(list) != 1 || list[0].Result != string(records["t"]) || o.Waiting("a") != 1 {
				t.Fatalf("%d ends, record %q, notifications %+v", len(list), records["t"], list)
			}
			closeInbox(t, o)
		})
	}
}

// failing is a store that fails now and then.
type failing struct {
	store.Store

	n    atomic.Int32
	mu   sync.Mutex
	fail map[string]bool // by batch: one that is repeated fails again
}

func (f *failing) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	f.mu.Lock()
	fails, known := f.fail[b.ID]
	if !known {
		every := int32(3)
		if len(b.Put) == 0 {
			every = 2
		}
		fails = f.n.Add(1)%every == 0
		f.fail[b.ID] = fails
	}
	f.mu.Unlock()
	if fails {
		return 0, errors.New("disk full")
	}
	return f.Store.Apply(ctx, b)
}

func TestFailingStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		o := newInbox(t, inbox.Config{Store: &failing{Store: memstore.New(), fail: map[string]bool{}}, Depth: 20})
		accepted := 0
		for i := range 20 {
			switch err := o.Deliver(t.Context(), "a", completed(fmt.Sprint(i), "x")); {
			case err == nil:
				accepted++
			case !strings.HasPrefix(err.Error(), `inbox: thread "a": `) || !strings.HasSuffix(err.Error(), "disk full"):
				t.Fatalf("error is %v", err)
			}
		}
		if accepted != 14 || o.Waiting("a") != accepted {
			t.Fatalf("%d accepted, %d wait", accepted, o.Waiting("a"))
		}
		acked := 0
		for range 100 {
			d := take(t, o)
			n := len(d.Notifications())
			if ack(t.Context(), d, 1) == nil && n > 0 {
				acked++
			}
			d.Release()
		}
		if acked != accepted || o.Waiting("a") != 0 {
			t.Fatalf("%d of %d were acknowledged, %d wait", acked, accepted, o.Waiting("a"))
		}
		closeInbox(t, o)
	})
}

// breakEntries replaces what the entries of a thread hold.
func breakEntries(t *testing.T, s store.Store, thread string) {
	t.Helper()
	all, err := s.Read(t.Context(), thread, store.Query{Cells: []store.Range{store.All("inbox-entry")}})
	if err != nil || len(all.Cells) == 0 {
		t.Fatalf("%d entries, %v", len(all.Cells), err)
	}
	for _, c := range all.Cells {
		c.Value = append(c.Value[:8:8], "{broken"...)
		c.Index = []store.IndexKey{{Name: "inbox", Group: thread}}
		if _, err := s.Apply(t.Context(), store.Batch{Thread: thread, Base: store.AnyRevision, Put: []store.Cell{c}}); err != nil {
			t.Fatal(err)
		}
	}
}
