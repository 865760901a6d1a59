package viewtest

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun/agentruntest"
	"github.com/mortise-dev/mortise/mailbox/mailboxtest"
	"github.com/mortise-dev/mortise/store"
)

// TestMailbox runs the suites of the mailbox on a store: the contract, that many schedules of the model by two processes that take turns,
// and what crosses from one process to another.
func TestMailbox(t *testing.T, open OpenFunc, schedules int) {
	t.Helper()
	two := func(t *testing.T) (one, other store.Store) {
		t.Helper()
		a, b := open(t)
		return a, b
	}
	first := func(t *testing.T) store.Store {
		t.Helper()
		one, _ := two(t)
		return one
	}
	run := func(name string, f func(t *testing.T)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f(t)
		})
	}
	run("store", func(t *testing.T) { mailboxtest.TestStore(t, first) })
	run("events", func(t *testing.T) { mailboxtest.TestEvents(t, two) })
	run("clocks", func(t *testing.T) { mailboxtest.TestClocks(t, two) })
	run("caps", func(t *testing.T) {
		mailboxtest.TestCaps(t, func(t *testing.T, n int) []store.Store {
			t.Helper()
			one, other := two(t)
			return slices.Repeat([]store.Store{one, other}, n)[:n]
		})
	})
	run("live", func(t *testing.T) { testLive(t, two) })
	run("model", func(t *testing.T) {
		mailboxtest.TestModel(t, func(t *testing.T) store.Store {
			t.Helper()
			return mailboxtest.InTurns(two(t))
		}, schedules)
	})
}

// NameFunc opens the store of a name, which is the same in all processes that share it.
type NameFunc = func(ctx context.Context, name string) (s store.Store, closeStore func(context.Context) error, err error)

func named(open NameFunc) mailboxtest.OpenFunc {
	return func(ctx context.Context, name string) (store.Store, func(context.Context) error, error) {
		s, closeStore, err := open(ctx, name)
		if err != nil {
			return nil, nil, err
		}
		return s, closeStore, nil
	}
}

// Child makes this process a child of [TestKilled], if it was started as one, and does not return then. TestMain calls it first.
func Child(open NameFunc) {
	mailboxtest.CrashChild(named(open))
	agentruntest.Child(named(open))
}

// TestKilled kills processes that submit, claim and run on one store, 200 times or until patience is over, and agents at each step of
// their runs. Name makes the name of an empty store.
func TestKilled(t *testing.T, open NameFunc, name func(t *testing.T) string, patience time.Duration) {
	t.Helper()
	t.Run("mailbox", func(t *testing.T) {
		t.Parallel()
		mailboxtest.TestCrashFor(t, named(open), name(t), patience)
	})
	t.Run("agent", func(t *testing.T) {
		t.Parallel()
		agentruntest.TestKilled(t, named(open), name)
	})
}

// steered is a runtime whose runs last until they get a message.
type steered struct{ begun, got chan string }

func (s steered) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	s.begun <- j.Run.ID
	select {
	case text := <-s.got:
		return mailbox.Result{Termination: "natural", Response: text}, nil
	case <-ctx.Done():
		return mailbox.Result{}, context.Cause(ctx)
	}
}

func (s steered) Steer(_ context.Context, _ string, c mailbox.Command) bool {
	r, err := mailbox.DecodeRequest(c.Payload)
	if err != nil || string(r.Messages[0].Data) == "refused" {
		return false
	}
	s.got <- string(r.Messages[0].Data)
	return true
}

// testLive sends messages to a run of another process: one that the run refuses is queued, and one that it takes ends it.
func testLive(t *testing.T, open func(t *testing.T) (one, other store.Store)) {
	t.Helper()
	one, other := open(t)
	s := steered{begun: make(chan string, 2), got: make(chan string, 2)}
	box := func(on store.Store) *mailbox.Mailbox {
		m, err := mailbox.New(t.Context(), mailbox.Config{Store: on, Runtime: s, Waits: mailbox.Waits{Live: 30 * time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), 10*time.Second)
			defer cancel()
			if err := m.Close(ctx); err != nil {
				t.Error(err)
			}
		})
		return m
	}
	here, there := box(one), box(other)
	if err := there.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	send := func(text string) mailbox.Submission {
		sub, err := here.SubmitLive(t.Context(), mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte(text)}}}, "")
		if err != nil {
			t.Fatal(err)
		}
		return sub
	}
	first := send("first")
	select {
	case <-s.begun:
	case <-time.After(30 * time.Second):
		t.Fatal("nothing began")
	}
	if sub := send("refused"); sub.Dispatch == first.Dispatch {
		t.Error("what the run refused was delivered")
	}
	if sub := send("end"); sub.Dispatch != first.Dispatch || !sub.Running {
		t.Errorf("what the run takes became %+v, and the run is %+v", sub, first)
	}
	d, err := here.Await(t.Context(), first.Dispatch)
	if err != nil || d.Status != mailbox.Acked || d.Response != "end" {
		t.Errorf("the run came to %s %q: %v", d.Status, d.Response, err)
	}
	s.got <- "for the second"
}
