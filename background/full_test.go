package background_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
)

// stuck bounds what a test in real time waits for what should take no time at all.
const stuck = 20 * time.Second

// fullInbox is the owner of thread "a", who has room for one notice and does not
// read, and tasks of it that end. The owner of any other thread has room for all.
func fullInbox(t *testing.T, ends int) (*background.Manager, *inbox.Box, []string) {
	t.Helper()
	box := inbox.NewBox(1, nil)
	l := into(box)
	send := l.give
	l.give = func(ctx context.Context, thread string, n abi.Notice) error {
		if thread != "a" {
			return nil
		}
		return send(ctx, thread, n)
	}
	m := newManager(t, background.Config{Ledger: l})
	var ids []string
	for range ends {
		ids = append(ids, spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil }))
	}
	return m, box, ids
}

// looks asks for all that is to be seen of the tasks: those that do not wait for
// room have ended, as many as notices are there.
func looks(m *background.Manager, ids []string) error {
	ended := 0
	for _, info := range m.List("a") {
		if info.Status.Terminal() {
			ended++
		}
	}
	for _, id := range ids {
		if info, ok := m.Get(id); ok && info.Status.Terminal() {
			ended++
		}
	}
	if blocking := m.HasBlocking("a"); ended != 2 || !blocking {
		return fmt.Errorf("%d of %d ends are seen, blocking %t; want one by List, one by Get, and true", ended, 2*len(ids), blocking)
	}
	return nil
}

// readAll is the order of a run: drain, ask whether to wait, wait.
func readAll(ctx context.Context, m *background.Manager, box *inbox.Box) (map[string]int, error) {
	seen := map[string]int{}
	for {
		for _, n := range box.Drain() {
			seen[n.TaskID]++
		}
		if !m.HasBlocking("a") {
			for _, n := range box.Drain() {
				seen[n.TaskID]++
			}
			return seen, nil
		}
		n, err := box.Recv(ctx)
		if err != nil {
			return seen, err
		}
		seen[n.TaskID]++
	}
}

// TestLookWhileTheInboxIsFull shows that who looks does not wait for room in the
// inbox, be it for the thread whose inbox is full or for any other.
func TestLookWhileTheInboxIsFull(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, box, ids := fullInbox(t, 4)
		<-time.After(time.Minute)
		start := time.Now()
		for range 100 {
			if err := looks(m, ids); err != nil {
				t.Fatal(err)
			}
		}
		for i := range 200 {
			other := fmt.Sprint("b", i)
			spawn(t, m, other, func(context.Context, *background.Task) (any, error) { return nil, nil })
			wait(t, m, other)
			if m.HasBlocking(other) || len(m.List(other)) != 1 {
				t.Fatalf("tasks of %s are %+v", other, m.List(other))
			}
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("looks and the ends of other threads took %s", took)
		}
		if seen, err := readAll(t.Context(), m, box); err != nil || len(seen) != 4 {
			t.Fatalf("read %v: %v", seen, err)
		}
		closeManager(t, m)
	})
}

// TestFirstLookIsBounded looks at once, when it cannot be known yet that there is no room.
func TestFirstLookIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m, box, ids := fullInbox(t, 4)
		synctest.Wait()
		start := time.Now()
		if err := looks(m, ids); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(start); took > 50*time.Millisecond {
			t.Errorf("the first looks took %s", took)
		}
		if seen, err := readAll(t.Context(), m, box); err != nil || len(seen) != 4 {
			t.Fatalf("read %v: %v", seen, err)
		}
		closeManager(t, m)
	})
}

// TestLookInRealTime is the same with the scheduler as it is: a reader that comes
// back from its wait must not find that the tasks were faster again.
func TestLookInRealTime(t *testing.T) {
	t.Parallel()
	m, box, ids := fullInbox(t, 4)
	result := make(chan error, 1)
	go func() {
		for m.HasBlocking("a") && box.Len() == 0 {
			tick := time.NewTimer(time.Millisecond)
			<-tick.C
		}
		for range 100 {
			if err := looks(m, ids); err != nil {
				result <- err
				return
			}
		}
		result <- nil
	}()
	select {
	case err := <-result:
		if err != nil {
			t.Error(err)
		}
	case <-time.After(stuck):
		t.Error("who looks waits until there is room")
	}
	for range ids { // also when it failed, so that it ends
		if _, err := box.Recv(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	closeManager(t, m)
}

// TestRunReadsASmallInbox is the run of [readAll] in real time, with more ends than room.
func TestRunReadsASmallInbox(t *testing.T) {
	t.Parallel()
	for range 50 {
		m, box, ids := fullInbox(t, 8)
		ctx, cancel := context.WithTimeout(t.Context(), stuck)
		done := make(chan struct{})
		go func() {
			defer close(done)
			if seen, err := readAll(ctx, m, box); err != nil || len(seen) != len(ids) {
				t.Errorf("read %v: %v", seen, err)
			}
		}()
		select {
		case <-done:
		case <-ctx.Done():
			t.Error("the run stands still")
			box.Close() // so that it ends
		}
		<-done
		cancel()
		closeManager(t, m)
		if t.Failed() {
			return
		}
	}
}

// TestSlowLedgerIsNotStarved looks all the time at a thread whose ledger takes its
// time, and gives up on request: the end comes through all the same, and no
// look takes longer than five seconds.
func TestSlowLedgerIsNotStarved(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		b := &ledger{}
		m := newManager(t, background.Config{Ledger: slowBook{b}})
		id := spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return "x", nil })
		start := time.Now()
		for m.HasBlocking("a") {
			tick := time.NewTimer(time.Millisecond)
			<-tick.C
		}
		if took := time.Since(start); took > 10*time.Second {
			t.Errorf("an end that takes a second to be kept took %s", took)
		}
		if info := b.kept(t, "a", id); info.Status != background.Completed || len(b.of("a")) != 1 {
			t.Fatalf("kept %+v, told %+v", info, b.of("a"))
		}
		closeManager(t, m)
	})
}

// slowBook takes a second to keep the end of a task.
type slowBook struct{ *ledger }

func (b slowBook) Commit(ctx context.Context, thread, task string, record []byte, n *abi.Notice) error {
	if n != nil {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return b.ledger.Commit(ctx, thread, task, record, n)
}

// TestNoRoomIsNoRefusal has an owner that says at once that it has no room: nothing
// is lost, as the end is handed on again.
func TestNoRoomIsNoRefusal(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		box := inbox.NewBox(1, nil)
		m := newManager(t, background.Config{Ledger: into(box)})
		for range 3 {
			spawn(t, m, "a", func(context.Context, *background.Task) (any, error) { return nil, nil })
		}
		<-time.After(time.Minute)
		if seen, err := readAll(t.Context(), m, box); err != nil || len(seen) != 3 || m.Stats().LostNotices != 0 {
			t.Fatalf("read %v: %v, %+v", seen, err, m.Stats())
		}
		closeManager(t, m)
	})
}

// TestCloseInTime shows how long Close waits for owners that take nothing.
func TestCloseInTime(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]background.Body{
		"ends_at_once": untilCancelled,
		"emits": func(ctx context.Context, task *background.Task) (any, error) {
			for task.Emit("tick", nil) {
			}
			return nil, errors.New("the owner takes nothing")
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				l := &ledger{give: func(ctx context.Context, _ string, _ abi.Notice) error { <-ctx.Done(); return context.Cause(ctx) }}
				m := newManager(t, background.Config{Ledger: l, Limits: background.Limits{Grace: 3 * time.Second}})
				for range 4 {
					spawn(t, m, "a", body)
				}
				start := time.Now()
				_ = m.Close(t.Context()) // bodies that continued are reported
				if took := time.Since(start); took > 5*time.Second {
					t.Errorf("close took %s with a grace of 3s", took)
				}
				if n := m.Stats().Unsaved; n != 4 {
					t.Errorf("%d of 4 lost ends are counted", n)
				}
			})
		})
	}
}

// TestCloseEndsASpawn closes while a ledger does not come back with the record of a new task.
func TestCloseEndsASpawn(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := newManager(t, background.Config{Ledger: deafBook{&ledger{}}})
		spawned := make(chan error, 1)
		go func() {
			_, err := m.Spawn(t.Context(), background.Spec{Thread: "a", Type: "x", Body: untilCancelled})
			spawned <- err
		}()
		synctest.Wait()
		start := time.Now()
		closeManager(t, m)
		if took := time.Since(start); took > background.DefaultGrace+2*time.Second {
			t.Errorf("close took %s", took)
		}
		if err := <-spawned; !errors.Is(err, background.ErrClosed) || len(m.List("a")) != 0 {
			t.Errorf("spawn: %v, tasks are %+v", err, m.List("a"))
		}
	})
}

// deafBook never has room.
type deafBook struct{ *ledger }

func (deafBook) Commit(ctx context.Context, _, _ string, _ []byte, _ *abi.Notice) error {
	<-ctx.Done()
	return context.Cause(ctx)
}
