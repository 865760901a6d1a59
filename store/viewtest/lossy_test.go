package viewtest_test

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
	"github.com/mortise-dev/mortise/thread"
)

// lossy is a store that loses the acknowledgement of one batch in three, and another one before it is applied.
type lossy struct {
	store.Store
	calls atomic.Int64
}

var errLost = errors.New("connection lost")

func (l *lossy) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	n := l.calls.Add(1) % 3
	if n == 0 {
		return 0, errLost
	}
	revision, err := l.Store.Apply(ctx, b)
	if err == nil && n == 1 {
		return 0, errLost
	}
	return revision, err
}

// lostRounds is how often each test writes.
const lostRounds = 12

// What a view wrote is there once, whatever acknowledgements were lost.
func TestLostAcknowledgements(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(*testing.T, store.Store){"thread": lostThread, "record": lostRecord, "inbox": lostInbox} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { run(t, &lossy{Store: memstore.New()}) })
		})
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}

func lostThread(t *testing.T, s store.Store) {
	t.Helper()
	threads := thread.On(s)
	var rev uint64
	for i := range lostRounds {
		next, err := threads.Swap("t", rev, compaction.State{Total: i + 1})
		if next <= rev {
			t.Errorf("revision %d after %d", next, rev)
		}
		rev = next
		must(
			t, err, threads.Append(t.Context(), "t", abi.Message{ID: fmt.Sprint(i), Role: abi.RoleUser}),
			threads.Replace(t.Context(), "t", abi.Message{ID: fmt.Sprint(i), Role: abi.RoleAssistant}),
			threads.Record(compaction.Event{Thread: "t", Attempt: i}),
		)
	}
	log, err := threads.Messages(t.Context(), "t")
	events, err1 := threads.Events(t.Context(), "t")
	state, at, err2 := threads.Load("t")
	must(t, err, err1, err2)
	if len(log) != lostRounds || len(events) != lostRounds || state.Total != lostRounds || at != rev {
		t.Fatalf("%d messages, %d events, state %d at %d", len(log), len(events), state.Total, at)
	}
	for i := range lostRounds {
		if log[i].ID != fmt.Sprint(i) || log[i].Role != abi.RoleAssistant || events[i].Attempt != i {
			t.Errorf("message %d is %+v, the event %+v", i, log[i], events[i])
		}
	}
}

func lostRecord(t *testing.T, s store.Store) {
	t.Helper()
	recorder, err := thread.NewRecorder(t.Context(), s, thread.RecordConfig{})
	must(t, err)
	for i := range lostRounds {
		run := fmt.Sprint("run-", i)
		must(t, recorder.Start(thread.RunStart{Run: abi.RunIdentity{ThreadID: "t", RunID: run}}))
		must(t, recorder.Add(run, thread.Decision{Step: i}), recorder.End(run, thread.RunEnd{Steps: 1}))
	}
	must(t, recorder.Close(t.Context()))
	runs := thread.RecordsOf(s)
	for i := range lostRounds {
		r, err := runs.In(t.Context(), "t", fmt.Sprint("run-", i))
		must(t, err)
		if len(r.Starts) != 1 || len(r.Entries) != 1 || len(r.Ends) != 1 {
			t.Errorf("run %d is %+v", i, r)
		}
	}
	_, err = thread.NewRecorder(t.Context(), s, thread.RecordConfig{Keep: 3})
	must(t, err)
	known, err := runs.List(t.Context(), 100)
	must(t, err)
	if len(known) != 3 || known[0].ID != fmt.Sprint("run-", lostRounds-1) {
		t.Errorf("runs %+v", known)
	}
}

func lostInbox(t *testing.T, s store.Store) {
	t.Helper()
	box, err := inbox.New(t.Context(), inbox.Config{Store: s, Shared: true})
	must(t, err)
	for i := range lostRounds {
		task := fmt.Sprint("task ", i)
		must(t, box.Commit(t.Context(), "t", task, []byte("begun"), nil), box.Commit(t.Context(), "t", task, []byte("r"), &abi.Notice{Kind: abi.NoticeCompleted, TaskID: task}))
		pending, err := box.Unread(t.Context(), "t")
		must(t, err)
		if len(pending) != i+1 || pending[i] != task {
			t.Fatalf("task %d: %q", i, pending)
		}
	}
	d, err := box.Take(t.Context(), "t")
	must(t, err)
	for key, n := range d.All() {
		must(t, d.Done(t.Context(), key), box.Forget(t.Context(), "t", n.TaskID))
	}
	if threads, err := box.Threads(t.Context()); err != nil || len(threads) != 0 {
		t.Errorf("threads %q, %v", threads, err)
	}
	must(t, box.Close(t.Context()))
}
