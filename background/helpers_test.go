package background_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"testing"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// ledger keeps what it is given, in memory, and fails on demand.
type ledger struct {
	mu      sync.Mutex
	got     map[string][]abi.Notice
	records map[string]map[string][]byte
	// fail refuses to commit something about a task, give gets notifications and may refuse them. Nil does neither.
	fail func(task string, terminal bool) error
	give func(ctx context.Context, thread string, n abi.Notice) error
}

// into is a ledger whose notifications go into a box.
func into(box *inbox.Box) *ledger { return intoOr(box, nil) }

// intoOr is a ledger whose notifications go into a box and, when that is closed, to late.
func intoOr(box *inbox.Box, late func(abi.Notice)) *ledger {
	return &ledger{give: func(ctx context.Context, _ string, n abi.Notice) error {
		ctx, cancel := context.WithCancel(ctx)
		cancel() // a ledger does not wait for room
		err := box.Send(ctx, n)
		if late != nil && errors.Is(err, inbox.ErrClosed) {
			late(n)
			return nil
		}
		return err
	}}
}

func (l *ledger) Commit(ctx context.Context, thread, task string, record []byte, n *abi.Notice) error {
	l.mu.Lock()
	fail := l.fail
	if fail != nil {
		if err := fail(task, n != nil && n.Kind != abi.NoticeCustom); err != nil {
			l.mu.Unlock()
			return err
		}
	}
	l.mu.Unlock()
	if n != nil && l.give != nil {
		if err := l.give(ctx, thread, *n); err != nil {
			return err
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.got == nil {
		l.got, l.records = map[string][]abi.Notice{}, map[string]map[string][]byte{}
	}
	if l.records[thread] == nil {
		l.records[thread] = map[string][]byte{}
	}
	if record != nil {
		l.records[thread][task] = record
	}
	if n != nil {
		l.got[thread] = append(l.got[thread], *n)
	}
	return nil
}

func (l *ledger) Claim(ctx context.Context, thread, task string, _, record []byte) (bool, error) {
	return true, l.Commit(ctx, thread, task, record, nil)
}

func (l *ledger) Forget(_ context.Context, thread string, tasks ...string) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, id := range tasks {
		delete(l.records[thread], id)
	}
	return nil
}

func (l *ledger) Threads(context.Context) ([]string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Collect(maps.Keys(l.records)), nil
}

func (l *ledger) Records(_ context.Context, thread string) (map[string][]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.records[thread]), nil
}

func (l *ledger) Unread(_ context.Context, thread string) (out []string, _ error) {
	for _, n := range l.of(thread) {
		if n.Kind != abi.NoticeCustom {
			out = append(out, n.TaskID)
		}
	}
	return out, nil
}

func (*ledger) Owner() string { return "" }

func (*ledger) Alive(context.Context) (map[string]bool, error) { return nil, nil } //nolint:nilnil // none is no error

// kept reads the record of a task.
func (l *ledger) kept(t *testing.T, thread, id string) background.Info {
	t.Helper()
	records, _ := l.Records(t.Context(), thread)
	var info background.Info
	if err := json.Unmarshal(records[id], &info); err != nil {
		t.Fatalf("record of %s: %v", id, err)
	}
	return info
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
