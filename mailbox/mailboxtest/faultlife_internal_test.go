package mailboxtest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// TestFaults_life lets what a mailbox asks of its store fail, in its whole life.
func TestFaults_life(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { faultsOfAMailbox(newWorld(t, memstore.New())) })
}

// operations are those of a store that a life needs.
func operations() []string {
	return []string{
		"read", "apply", "watch", "scan ready", "scan later", "scan dispatch", "scan status", "scan wait", "count claim", "append_events", "read_events",
		"purge_events",
	}
}

// faultsOfAMailbox lets operations of a mailbox's life fail: of each name the first, in another life the second, and so on, in each
// way. The life comes out the same each time.
func faultsOfAMailbox(w *world) {
	const lives = 6
	var mu sync.Mutex
	reached := map[string]map[Fault]int{}
	for nth := 1; nth <= lives && !w.t.Failed(); nth++ {
		for _, fault := range []Fault{FaultBefore, FaultAfter} {
			seen := map[string]int{}
			w.mailboxLife(fmt.Sprintf("%s-%d", fault, nth), func(_ context.Context, operation string) Fault {
				mu.Lock()
				defer mu.Unlock()
				seen[operation]++
				if seen[operation] != nth {
					return FaultNone
				}
				if reached[operation] == nil {
					reached[operation] = map[Fault]int{}
				}
				reached[operation][fault]++
				return fault
			})
		}
	}
	w.everyOperation(reached)
}

// everyOperation checks that all that the store can do was reached.
func (w *world) everyOperation(reached map[string]map[Fault]int) {
	w.t.Helper()
	for _, name := range operations() {
		if n := reached[name]; n[FaultBefore] == 0 || n[FaultAfter] == 0 {
			w.t.Errorf("%q failed %d times before it was done, and %d times after", name, n[FaultBefore], n[FaultAfter])
		}
	}
}

// mailboxLife takes a thread through a life of two processes, one of which executes, whose stores fail as planned. Who asks asks again when it
// failed, under the same key.
func (w *world) mailboxLife(name string, plan func(context.Context, string) Fault) {
	w.t.Helper()
	r := newWorker()
	faulty := &Faulty{Store: w.store, Plan: plan}
	cfg := mailbox.Config{
		Store: faulty, Runtime: r, Poll: 5 * time.Millisecond,
		Retry:  mailbox.Retry{Delay: time.Millisecond, MaxDelay: 4 * time.Millisecond, Aside: time.Millisecond, MaxAside: 4 * time.Millisecond, Starts: 3, StartDelay: time.Millisecond},
		Events: mailbox.Events{Pause: time.Millisecond}, Limits: mailbox.Limits{Claims: 100},
		Retention: mailbox.Retention{Interval: -1},
		Lease:     mailbox.Lease{Skew: -1, Duration: 2 * time.Second, Renew: 500 * time.Millisecond},
	}
	l := &mailboxLife{world: w, thread: name, worker: r, here: w.newBox(cfg)}
	cfg.Runtime = newWorker()
	l.there = w.newBox(cfg)
	must(w.t, l.here.Start(w.ctx()))
	l.play()
	for _, m := range []*mailbox.Mailbox{l.there, l.here} {
		ctx, cancel := context.WithTimeout(w.ctx(), 20*time.Second)
		must(w.t, m.Close(ctx))
		cancel()
	}
	if len(r.bad) > 0 {
		w.t.Errorf("%s: %q", name, r.bad)
	}
}

func (w *world) newBox(cfg mailbox.Config) *mailbox.Mailbox {
	w.t.Helper()
	m, err := mailbox.New(w.ctx(), cfg)
	must(w.t, err)
	return m
}
