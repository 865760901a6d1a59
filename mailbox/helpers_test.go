package mailbox_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
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

// witness is an observer that remembers what it was told.
type witness struct {
	mu         sync.Mutex
	operations map[string]int
	executions []mailbox.Outcome
	settled    []mailbox.Taken
	signals    map[mailbox.SignalEvent]int
}

func (w *witness) Operation(ctx context.Context, o mailbox.Operation) (context.Context, func(string, error)) {
	return ctx, func(r string, _ error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.operations == nil {
			w.operations = map[string]int{}
		}
		w.operations[string(o.Name)+" "+string(r)]++
	}
}

func (w *witness) Execution(ctx context.Context, _ *mailbox.Job) (context.Context, func(mailbox.Outcome, error)) {
	return ctx, func(o mailbox.Outcome, _ error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.executions = append(w.executions, o)
	}
}

func (w *witness) Settled(_ context.Context, k mailbox.Taken) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.settled = append(w.settled, k)
}

func (w *witness) Signal(_ context.Context, e mailbox.SignalEvent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.signals == nil {
		w.signals = map[mailbox.SignalEvent]int{}
	}
	w.signals[e]++
}

func (w *witness) count(operation string) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.operations[operation]
}

func (w *witness) heard(e mailbox.SignalEvent) int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.signals[e]
}

// plain is a store without signals and live channels.
type plain struct{ store.Store }

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

// head reads a thread.
func head(t *testing.T, m *mailbox.Mailbox, thread string) mailbox.Thread {
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
