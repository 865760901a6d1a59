package mailboxtest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

func lifeCases() []testCase {
	return []testCase{{"fault_at_operations_of_a_life", faultsOfAMailbox}}
}

// operations are those of a store that a life needs.
func operations() []string {
	return []string{
		"read", "apply", "watch", "scan ready", "scan later", "scan dispatch", "scan status", "scan wait", "count claim", "append_events", "read_events",
		"purge_events",
	}
}

// worker is a runtime that does what the message asks: it fails the first time, waits, or continues until it is asked to end. It
// writes the message to the log.
type worker struct {
	mu sync.Mutex
	// busy are the executions by thread, until their lease is lost.
	busy map[string]context.Context
	ends map[string]chan struct{}
	// bad is what must not happen.
	bad []string
}

func newWorker() *worker {
	return &worker{busy: map[string]context.Context{}, ends: map[string]chan struct{}{}}
}

func (r *worker) end(run string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends[run] == nil {
		r.ends[run] = make(chan struct{}, 1)
	}
	return r.ends[run]
}

// enter notes that an execution of a thread begins.
func (r *worker) enter(ctx context.Context, thread string) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.busy[thread]; other != nil && other.Err() == nil {
		r.bad = append(r.bad, "two executions of thread "+thread+" at once")
	}
	r.busy[thread] = ctx //nolint:fatcontext // it is read, and not passed on
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.busy[thread] == ctx {
			delete(r.busy, thread)
		}
	}
}

func (r *worker) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	defer r.enter(ctx, j.Dispatch.Thread)()
	in := j.Request.Messages[0]
	if err := write(ctx, j, in); err != nil {
		return mailbox.Result{}, err
	}
	j.Emit("word", in.Data) // who waits for that knows that it is in the log
	switch word := string(in.Data); {
	case word == "fail" && j.Attempt == 1:
		return mailbox.Result{}, errors.New("a blip")
	case word == "bury":
		return mailbox.Result{}, mailbox.ErrPermanent
	case word == "wait":
		return mailbox.Result{Status: mailbox.RunWaiting, Wait: "user_input"}, nil
	case word == "long":
		select {
		case <-r.end(j.Run.ID):
		case <-ctx.Done():
			return mailbox.Result{}, context.Cause(ctx)
		}
	}
	return mailbox.Result{Termination: "natural"}, nil
}

// write puts a message into the log, once.
func write(ctx context.Context, j *mailbox.Job, in mailbox.Input) error {
	log, err := j.Log(ctx, 1, 100)
	if err != nil {
		return err
	}
	for i := range log {
		if log[i].ID == in.ID {
			return nil
		}
	}
	c := mailbox.Commit{ID: j.Dispatch.ID, From: len(log), Append: []mailbox.Message{{ID: in.ID, Run: j.Run.ID, Data: in.Data}}, Data: in.Data}
	return j.Commit(ctx, c)
}

func (r *worker) Steer(_ context.Context, run, _ string, _ mailbox.Request) bool {
	select {
	case r.end(run) <- struct{}{}:
	default:
	}
	return true
}

// faultsOfAMailbox lets operations of a mailbox's life fail: of each name the first, in another life the second, and so on, in each
// way. The life comes out the same each time. On a store that is slow there are fewer lives, four at least.
func faultsOfAMailbox(w *world) {
	const least, most, patience = 2, 6, 10 * time.Second
	begin := time.Now()
	var mu sync.Mutex
	reached := map[string]map[Fault]int{}
	for nth := 1; nth <= most && !w.t.Failed() && (nth <= least || time.Since(begin) < patience); nth++ {
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
