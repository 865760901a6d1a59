package inbox_test

import (
	"context"
	"encoding/json"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

// process is one of several that share a store.
type process struct {
	*background.Manager
	out *inbox.Inbox
}

func join(t *testing.T, s store.Store) *process {
	t.Helper()
	p := &process{}
	p.out = newInbox(t, inbox.Config{
		Store: s, Shared: true,
		Acknowledged: func(ctx context.Context, thread string, ids ...string) { p.Acknowledge(ctx, thread, ids...) },
		Expired: func(ctx context.Context) {
			if err := p.Recover(ctx); err != nil {
				t.Error(err)
			}
		},
	})
	var err error
	if p.Manager, err = background.New(background.Config{Ledger: p.out}); err != nil {
		t.Fatal(err)
	}
	if err := p.Recover(t.Context()); err != nil {
		t.Fatal(err)
	}
	return p
}

func (p *process) close(t *testing.T) {
	t.Helper()
	if err := p.Manager.Close(t.Context()); err != nil {
		t.Error(err)
	}
	closeInbox(t, p.out)
}

// mute is a store that a process does not reach anymore.
type mute struct {
	store.Store
	dead atomic.Bool
}

func (m *mute) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if m.dead.Load() {
		return 0, errDead
	}
	return m.Store.Apply(ctx, b)
}

// TestClocksOfProcesses: a process whose clock is wrong sees the same processes as the others, and they see it.
func TestClocksOfProcesses(t *testing.T) {
	t.Parallel()
	shared := memstore.New()
	var all []*inbox.Inbox
	for _, wrong := range []time.Duration{-time.Hour, 0, time.Hour} {
		o := newInbox(t, inbox.Config{Store: shared, Shared: true, Now: func() time.Time { return time.Now().Add(wrong) }})
		all = append(all, o)
	}
	for _, o := range all {
		alive, err := o.Alive(t.Context())
		if err != nil || len(alive) != len(all) {
			t.Errorf("%d of %d processes are alive, %v", len(alive), len(all), err)
		}
	}
	for _, o := range all {
		closeInbox(t, o)
	}
}

// together is a ledger whose process waits, when it has read the records of a thread, until the others have read them as well.
type together struct {
	*inbox.Inbox
	read *sync.WaitGroup
}

func (l together) Records(ctx context.Context, thread string) (map[string][]byte, error) {
	records, err := l.Inbox.Records(ctx, thread)
	l.read.Done()
	l.read.Wait()
	return records, err
}

// TestOneProcessResumesATask: of processes that find the task of a dead one at the same moment, one resumes it.
func TestOneProcessResumesATask(t *testing.T) {
	t.Parallel()
	const processes = 4
	shared := memstore.New()
	left := newInbox(t, inbox.Config{Store: shared})
	record, err := json.Marshal(background.Info{ID: "task", Thread: "a", Type: "task", Status: background.Running, Attempt: 1, Owner: "dead"})
	if err == nil {
		err = left.Commit(t.Context(), "a", "task", record, nil)
	}
	if err != nil {
		t.Fatal(err)
	}
	closeInbox(t, left)

	var read, recovered sync.WaitGroup
	var resumed atomic.Int64
	read.Add(processes)
	for range processes {
		o := newInbox(t, inbox.Config{Store: shared, Shared: true})
		m, err := background.New(background.Config{Ledger: together{o, &read}, Resume: func(background.Info) background.Body {
			return func(context.Context, *background.Task) (any, error) { resumed.Add(1); return "done", nil }
		}})
		if err != nil {
			t.Fatal(err)
		}
		recovered.Go(func() {
			if err := m.Recover(t.Context()); err != nil {
				t.Error(err)
			}
			if err := m.Wait(t.Context(), "a"); err != nil {
				t.Error(err)
			}
			if err := m.Close(t.Context()); err != nil {
				t.Error(err)
			}
			closeInbox(t, o)
		})
	}
	recovered.Wait()
	if n := resumed.Load(); n != 1 {
		t.Errorf("%d processes resumed the task", n)
	}
	last := newInbox(t, inbox.Config{Store: shared})
	if n := last.Waiting("a"); n != 1 {
		t.Errorf("%d notifications of its end", n)
	}
	closeInbox(t, last)
}

// TestProcessesOfOneStore: a process that starts or waits leaves the tasks of another one alone for as long as that is
// alive, and takes them over when it is not. Its end wakes the thread in whichever process is there.
func TestProcessesOfOneStore(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		shared := memstore.New()
		dying := &mute{Store: shared}
		first := join(t, dying)
		id, err := first.Spawn(t.Context(), background.Spec{Thread: "a", Type: "task", Body: hanging})
		if err != nil {
			t.Fatal(err)
		}
		second := join(t, shared)
		<-time.After(5 * time.Minute)
		if second.HasBlocking("a") || second.out.Waiting("a") != 0 {
			t.Fatalf("a task of a process that is alive was taken over: %+v", second.List("a"))
		}
		dying.dead.Store(true) // from here on, nothing of it arrives
		woken := make(chan string, 1)
		second.out.Start(func(_ context.Context, thread string) error {
			select {
			case woken <- thread:
			default:
			}
			return nil
		})
		if thread := <-woken; thread != "a" {
			t.Fatalf("thread %q was woken", thread)
		}
		d := take(t, second.out)
		if list := d.Notifications(); len(list) != 1 || list[0].TaskID != id || list[0].Error != background.Orphaned {
			t.Fatalf("notifications are %+v", list)
		}
		if err := ack(t.Context(), d, 1); err != nil {
			t.Fatal(err)
		}
		second.close(t)
		dying.dead.Store(false)
		first.CancelAll("a")
		first.close(t)
		third := join(t, shared)
		if third.out.Waiting("a") != 0 {
			t.Error("the end of the task was queued twice")
		}
		third.close(t)
	})
}

// written notes the threads that are written.
type written struct {
	store.Store

	names []string
}

func (w *written) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	w.names = append(w.names, b.Thread)
	return w.Store.Apply(ctx, b)
}

// TestProcesses_thread: no client of a server with the same store can choose the thread of the processes, and delete it.
func TestProcesses_thread(t *testing.T) {
	t.Parallel()
	w := &written{Store: memstore.New()}
	closeInbox(t, newInbox(t, inbox.Config{Store: w, Shared: true, Now: time.Now}))
	if len(w.names) == 0 || slices.ContainsFunc(w.names, utf8.ValidString) {
		t.Errorf("a client can have one of the threads %q", w.names)
	}
}
