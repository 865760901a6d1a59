package mailbox_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
)

// cases runs each as a parallel subtest with a clock of its own.
func cases(t *testing.T, list map[string]func(*testing.T)) {
	t.Helper()
	for name, f := range list {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, f)
		})
	}
}

// settled is a dispatch that became terminal.
type settled struct {
	Dispatch mailbox.Dispatch
	Run      mailbox.Run
}

// witness is an observer that remembers what it received.
type witness struct {
	mu         sync.Mutex
	operations map[string]int
	executions []mailbox.Outcome
	settled    []settled
}

func (w *witness) Operation(ctx context.Context, o mailbox.Operation) (context.Context, func(string, error)) {
	return ctx, func(r string, _ error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.operations == nil {
			w.operations = map[string]int{}
		}
		w.operations[o.Name+" "+r]++
	}
}

func (w *witness) Execution(ctx context.Context, _ *mailbox.Job) (context.Context, func(mailbox.Outcome, error)) {
	return ctx, func(o mailbox.Outcome, _ error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.executions = append(w.executions, o)
	}
}

func (w *witness) Settled(_ context.Context, d mailbox.Dispatch, r mailbox.Run) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = append(w.settled, settled{d, r})
}

func (w *witness) count(operation string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.operations[operation]
}

// plain is a store without events and notifications.
type plain struct{ store.Store }

func (plain) Watch(ctx context.Context, _ string) (<-chan struct{}, error) {
	none := make(chan struct{})
	context.AfterFunc(ctx, func() { close(none) })
	return none, nil
}

// switched counts the operations of a store and lets some fail.
type switched struct {
	mu   sync.Mutex
	left map[string]int
	seen map[string]int
}

func (s *switched) plan(_ context.Context, operation string) mailboxtest.Fault {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.seen == nil {
		s.seen = map[string]int{}
	}
	s.seen[operation]++
	if s.left[operation] > 0 {
		s.left[operation]--
		return mailboxtest.FaultBefore
	}
	return mailboxtest.FaultNone
}

// fail lets the next n operations of a name fail.
func (s *switched) fail(operation string, n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.left = map[string]int{operation: n}
}

func (s *switched) asked(operation string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen[operation]
}

// record reads a thread.
func record(t *testing.T, m *mailbox.Mailbox, thread string) mailbox.Thread {
	t.Helper()
	h, err := m.Thread(t.Context(), thread)
	must(t, err)
	return h
}

// sleep lets a time pass, and what happens in it.
func sleep(d time.Duration) {
	time.Sleep(d)
	synctest.Wait()
}

func equal[T comparable](t *testing.T, what string, got, want T) {
	t.Helper()
	if got != want {
		t.Errorf("%s is %v, want %v", what, got, want)
	}
}

// queued queues an entry as another process does that carries nothing out.
func queued(t *testing.T, m *mailbox.Mailbox, r mailbox.Request) mailbox.Submission {
	t.Helper()
	sub := background(t, m, r)
	if sub.Running {
		t.Fatal("it runs already")
	}
	return sub
}

// waitsOnce waits for a permission the first time and is done the second time.
func waitsOnce(wait string) func(context.Context, *mailbox.Job) (mailbox.Result, error) {
	return func(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
		if j.Run.Session == j.Dispatch.Instance && j.Dispatch.Seq == 1 {
			return mailbox.Result{Status: mailbox.RunWaiting, Wait: wait}, nil
		}
		return mailbox.Result{Termination: "natural"}, nil
	}
}
