package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/memstore"
)

var errDead = errors.New("the process is dead")

// mortal are stores of a process that dies before its nth write. What was written
// stays.
type mortal struct {
	store.Store
	*agent.Memory

	left atomic.Int64
}

func (m *mortal) dead() bool { return m.left.Add(-1) < 0 }

func (m *mortal) SaveCheckpoint(ctx context.Context, c agent.Checkpoint) error {
	if m.dead() {
		return errDead
	}
	return m.Memory.SaveCheckpoint(ctx, c)
}

func (m *mortal) Apply(ctx context.Context, b store.Batch) (uint64, error) {
	if m.dead() {
		return 0, errDead
	}
	return m.Store.Apply(ctx, b)
}

// TestWhereverItDies ends the process before each of its writes in turn. The next one
// comes to the same: the end of each task that was started stands in the conversation
// once, and is followed by an answer; nothing waits any more.
func TestWhereverItDies(t *testing.T) {
	t.Parallel()
	writes := int64(1)
	for n := int64(0); n < writes; n++ {
		synctest.Test(t, func(t *testing.T) {
			m := &mortal{Store: memstore.New(), Memory: agent.NewMemory()}
			m.left.Store(n)
			live(t, m, "p", m)
			if left := m.left.Load(); left >= 0 {
				writes = n // it came to its end
			} else {
				writes = n + 2
			}
			after(t, m)
		})
	}
	if writes < 10 {
		t.Fatalf("a life has %d writes: the test shows nothing", writes)
	}
}

// live is the first process: two tasks end, a run receives them, its tool starts a third.
func live(t *testing.T, m *mortal, process string, kept agent.Checkpointer) {
	t.Helper()
	var f *office
	f = newOffice(t, officeParts{
		dies: true, model: &model{script: []any{calls("build"), "I wait."}}, out: inbox.Config{Store: m}, tasks: background.Config{NewID: named(process)},
		agent: agent.Config{Checkpoints: kept, Profile: agent.Profile{Tools: tools{"build": func(ctx context.Context, _ abi.ToolCall) (string, error) {
			_, err := f.Spawn(ctx, background.Spec{Thread: "a", Type: "task", Body: func(context.Context, *background.Task) (any, error) { return "built", nil }})
			return "started", err
		}}}},
	})
	for i := range 2 {
		_, _ = f.Spawn(t.Context(), background.Spec{Thread: "a", Type: "task", Body: func(context.Context, *background.Task) (any, error) { return i, nil }})
	}
	_, _ = f.agent.Run(t.Context(), asked("go"))
	<-time.After(time.Second)
	_ = f.Manager.Close(t.Context())
	closeInbox(t, f.out)
}

func named(process string) func() string {
	next := sequence()
	return func() string { return process + next() }
}

var told = regexp.MustCompile(`task_id":"(\w+)"`)

// after is the next process.
func after(t *testing.T, m *mortal) {
	t.Helper()
	spawned := map[string]bool{}
	before := newInbox(t, inbox.Config{Store: m.Store})
	records, err := before.Records(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	closeInbox(t, before)
	for id := range records {
		spawned[id] = true
	}
	f := newOffice(t, officeParts{
		model: &model{}, out: inbox.Config{Store: m.Store}, tasks: background.Config{NewID: named("q")},
		agent: agent.Config{Checkpoints: m.Memory},
	})
	<-time.After(time.Hour)
	synctest.Wait()
	asked := f.model.times()
	if err := f.agent.Wake(t.Context(), "a"); err != nil || f.model.times() != asked { // as a recovery of runs under way does
		t.Errorf("asked %d times for nothing, %v", f.model.times()-asked, err)
	}
	c, _, err := m.LoadThread(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	ends := map[string]int{}
	var all strings.Builder
	for i := range c.Messages {
		fmt.Fprintf(&all, "%s: %s\n", c.Messages[i].Role, c.Messages[i].Text())
		if strings.HasPrefix(c.Messages[i].Text(), "<background-task-event") {
			for _, hit := range told.FindAllStringSubmatch(c.Messages[i].Text(), -1) {
				ends[hit[1]]++
			}
		}
	}
	for id := range spawned {
		if ends[id] != 1 {
			t.Errorf("the end of %s stands %d times", id, ends[id])
		}
	}
	if n := len(c.Messages); n > 0 && (c.Messages[n-1].Role != abi.RoleAssistant || c.Run.Status != agent.StatusDone) {
		t.Errorf("the last word is not the model's, or its run is %s", c.Run.Status)
	}
	if f.out.Waiting("a") != 0 || len(ends) < len(spawned) || len(c.Taken) > len(spawned) {
		t.Errorf("%d notices wait, the checkpoint holds %d keys", f.out.Waiting("a"), len(c.Taken))
	}
	if t.Failed() {
		t.Fatalf("with %d writes of the first process: %s", m.left.Load(), all.String())
	}
	f.close(t)
}
