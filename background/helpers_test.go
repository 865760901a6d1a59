package background_test

import (
	"context"
	"fmt"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger is an owner that keeps what it is given, by thread.
type ledger struct {
	mu  sync.Mutex
	got map[string][]abi.Notice
}

func (l *ledger) deliver(_ context.Context, thread string, n abi.Notice) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.got == nil {
		l.got = map[string][]abi.Notice{}
	}
	l.got[thread] = append(l.got[thread], n)
	return nil
}

func (l *ledger) of(thread string) []abi.Notice {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]abi.Notice(nil), l.got[thread]...)
}

func counter() func() string {
	var mu sync.Mutex
	n := 0
	return func() string {
		mu.Lock()
		defer mu.Unlock()
		n++
		return fmt.Sprintf("bg_%d", n-1)
	}
}

func newManager(t *testing.T, cfg background.Config) *background.Manager {
	t.Helper()
	m, err := background.New(cfg)
	if err != nil {
		t.Fatalf("new: %v", err)
	}
	return m
}

func spawn(t *testing.T, m *background.Manager, thread string, body background.Body) string {
	t.Helper()
	id, err := m.Spawn(t.Context(), background.Spec{Thread: thread, Type: "test", Description: "a test", Body: body})
	if err != nil {
		t.Fatalf("spawn: %v", err)
	}
	return id
}

func wait(t *testing.T, m *background.Manager, thread string) {
	t.Helper()
	if err := m.Wait(t.Context(), thread); err != nil {
		t.Fatalf("wait: %v", err)
	}
}

func closeManager(t *testing.T, m *background.Manager) {
	t.Helper()
	if err := m.Close(t.Context()); err != nil {
		t.Fatalf("close: %v", err)
	}
}

func status(t *testing.T, m *background.Manager, id string) background.Info {
	t.Helper()
	info, ok := m.Get(id)
	if !ok {
		t.Fatalf("task %s is unknown", id)
	}
	return info
}

func untilCancelled(ctx context.Context, _ *background.Task) (any, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// housekeep starts a housekeeping task of thread a.
func housekeep(t *testing.T, m *background.Manager, body background.Body) string {
	t.Helper()
	id, err := m.Spawn(t.Context(), background.Spec{Thread: "a", Type: "compaction", Description: "secret", Class: background.Housekeeping, Body: body})
	if err != nil {
		t.Fatal(err)
	}
	return id
}
