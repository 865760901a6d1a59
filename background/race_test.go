package background_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
)

// schedules runs a race many times, each in a bubble, on several goroutines so
// that the scheduler mixes them.
func schedules(t *testing.T, n int, race func(*testing.T)) {
	t.Helper()
	for round := range 4 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			for range n / 4 {
				synctest.Test(t, race)
			}
		})
	}
}

// TestDecideRace is the end of a run against the end of its tasks: the run drains,
// asks whether to wait, and if not closes its inbox. A notice is read, handed back
// or falls back, and a run that does not wait has all notices before it closes.
func TestDecideRace(t *testing.T) {
	t.Parallel()
	schedules(t, 2000, func(t *testing.T) {
		t.Helper()
		var late atomic.Int32
		box := inbox.NewBox(2, nil)
		m := newManager(t, background.Config{Ledger: intoOr(box, func(abi.Notice) { late.Add(1) })})
		for range 3 {
			spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		}
		read := len(box.Drain())
		for m.HasBlocking("a") {
			if _, err := box.Recv(t.Context()); err != nil {
				t.Fatal(err)
			}
			read++
			read += len(box.Drain())
		}
		// Nothing is pending: all ends must be here, none may come later.
		read += len(box.Drain())
		left := len(box.Close())
		closeManager(t, m)
		if read != 3 || left != 0 || late.Load() != 0 {
			t.Fatalf("%d read, %d left, %d late, of 3", read, left, late.Load())
		}
	})
}

// TestNextRunRace moves a thread from one run to the next while a task ends. Its end
// goes to the run that is there: it is handed back by the old one, or falls back as the
// old one is over, or is read by the new one. A task that was spawned in the old run
// and ends in the new one is reported to the new one only.
func TestNextRunRace(t *testing.T) {
	t.Parallel()
	schedules(t, 2000, func(t *testing.T) {
		t.Helper()
		var mu sync.Mutex
		var fellBack []string
		first, second := inbox.NewBox(0, nil), inbox.NewBox(0, nil)
		current := first
		told := map[string]*inbox.Box{} // which run was there when a task ended
		m := newManager(t, background.Config{Ledger: &ledger{give: func(ctx context.Context, _ string, n abi.Notice) error {
			mu.Lock()
			box := current
			told[n.TaskID] = box
			mu.Unlock()
			err := box.Send(ctx, n)
			if errors.Is(err, inbox.ErrClosed) {
				mu.Lock()
				defer mu.Unlock()
				fellBack, err = append(fellBack, n.TaskID), nil
			}
			return err
		}}})
		moved := make(chan struct{})
		early := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		late := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { <-moved; return nil, nil })
		old := ids(first.Close())
		mu.Lock()
		current = second
		mu.Unlock()
		close(moved)
		wait(t, m, "a")
		read := ids(second.Close())
		where := map[bool][]string{true: append(old, fellBack...), false: read} // by whether the first run was there
		for _, id := range []string{early, late} {
			if !slices.Contains(where[told[id] == first], id) || slices.Contains(where[told[id] != first], id) {
				t.Errorf("the end of %s was handed back %v, fell back %v, or was read %v", id, old, fellBack, read)
			}
		}
		if told[late] != second || len(old)+len(fellBack)+len(read) != 2 || first.Len() != 0 {
			t.Errorf("2 ends were handed back %v, fell back %v, or were read %v; the last is of %s", old, fellBack, read, late)
		}
		closeManager(t, m)
	})
}

func ids(notices []abi.Notice) (out []string) {
	for _, n := range notices {
		out = append(out, n.TaskID)
	}
	return out
}

// TestCancelAgainstEnd ends a task while it is cancelled: it has one end, and what
// is seen of it never changes again.
func TestCancelAgainstEnd(t *testing.T) {
	t.Parallel()
	schedules(t, 2000, func(t *testing.T) {
		t.Helper()
		l := &ledger{}
		m := newManager(t, background.Config{Ledger: l})
		id := spawn(t, m, "a", func(ctx context.Context, _ *background.Task) (any, error) {
			if ctx.Err() != nil {
				return nil, ctx.Err()
			}
			return "done", nil
		})
		go m.CancelAll("a")
		go m.CancelTree(id)
		m.Cancel(id)
		wait(t, m, "a")
		first := status(t, m, id)
		synctest.Wait()
		got := l.of("a")
		if len(got) != 1 || string(got[0].Kind) != string(first.Status) || status(t, m, id).Status != first.Status || m.Cancel(id) {
			t.Fatalf("seen %+v, told %+v", first, got)
		}
		closeManager(t, m)
	})
}

// TestLimitRace spawns from many goroutines: as many run as may, never more, and none
// is refused that the queue has room for.
func TestLimitRace(t *testing.T) {
	t.Parallel()
	schedules(t, 1000, func(t *testing.T) {
		t.Helper()
		l := &ledger{}
		m := newManager(t, background.Config{Ledger: l, Limits: background.Limits{MaxRunning: 4, MaxPerThread: 2, MaxQueued: 4}})
		var all, ofA, most, mostA, started atomic.Int32
		var wg sync.WaitGroup
		for i := range 12 {
			wg.Go(func() {
				thread := []string{"a", "b", "c"}[i%3]
				_, err := m.Spawn(t.Context(), background.Spec{Thread: thread, Type: "x", Body: func(context.Context, *background.Task) (any, error) {
					raise(&most, all.Add(1))
					defer all.Add(-1)
					if thread == "a" {
						raise(&mostA, ofA.Add(1))
						defer ofA.Add(-1)
					}
					<-time.After(time.Millisecond)
					return nil, nil
				}})
				if err == nil {
					started.Add(1)
				}
			})
		}
		wg.Wait()
		for _, thread := range []string{"a", "b", "c"} {
			wait(t, m, thread)
		}
		if most.Load() != 4 || mostA.Load() > 2 || started.Load() < 8 {
			t.Fatalf("%d ran at once, %d of one thread, %d of 12 were taken", most.Load(), mostA.Load(), started.Load())
		}
		closeManager(t, m)
	})
}

// raise sets a maximum, also when others do at the same time.
func raise(most *atomic.Int32, n int32) {
	for old := most.Load(); n > old && !most.CompareAndSwap(old, n); old = most.Load() {
	}
}
