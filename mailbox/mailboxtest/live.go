package mailboxtest

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// testLive proves the live channels of a store that has them.
func testLive(t *testing.T, open func(*testing.T) mailbox.Store) {
	t.Helper()
	live, ok := open(t).(mailbox.Live)
	if !ok {
		return // an optional ability
	}
	targets := []mailbox.Target{{Thread: "t"}, {Thread: "t", Run: "r"}, {Thread: "t", Run: "r", Dispatch: "d"}}
	for _, target := range targets {
		if ok, err := deliver(t, live, target, "early"); ok || err != nil {
			t.Errorf("delivered to nobody: %v, %v", ok, err)
		}
	}
	heard := make([][]string, len(targets))
	var stops []func()
	for i, target := range targets {
		stop, err := live.Listen(t.Context(), target, func(_ context.Context, c mailbox.Command) bool {
			heard[i] = append(heard[i], c.ID+string(c.Kind)+string(c.Payload))
			return c.ID != "refuse"
		})
		must(t, err)
		stops = append(stops, stop)
	}
	for i, target := range targets {
		if ok, err := deliver(t, live, target, string(rune('a'+i))); !ok || err != nil {
			t.Errorf("not delivered: %v, %v", ok, err)
		}
		if ok, err := deliver(t, live, target, "refuse"); ok || err != nil {
			t.Errorf("delivered what was refused: %v, %v", ok, err)
		}
	}
	var second []string
	stop, err := live.Listen(t.Context(), targets[0], func(_ context.Context, c mailbox.Command) bool {
		second = append(second, c.ID)
		return true
	})
	must(t, err)
	stops[0]()
	if ok, err := deliver(t, live, targets[0], "late"); !ok || err != nil {
		t.Errorf("not delivered to the second listener: %v, %v", ok, err)
	}
	for _, stop := range append(stops, stop) {
		stop()
		stop()
	}
	if ok, err := deliver(t, live, targets[1], "over"); ok || err != nil {
		t.Errorf("delivered after the end: %v, %v", ok, err)
	}
	for i := range targets {
		same(t, "heard", heard[i], string(rune('a'+i))+"cancelx", "refusecancelx")
	}
	same(t, "heard by the second", second, "late")
}

func deliver(t *testing.T, live mailbox.Live, target mailbox.Target, id string) (bool, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return live.Deliver(ctx, target, mailbox.Command{Kind: mailbox.CommandCancel, ID: id, Payload: []byte("x")})
}

// steered is a runtime whose runs go on until one is given the word "end", and panic at the word "panic".
type steered struct {
	running chan string // its runs, as they begin
	end     chan struct{}
}

func (s *steered) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	s.running <- j.Run.ID
	select {
	case <-s.end:
		return mailbox.Result{Termination: "natural"}, nil
	case <-ctx.Done():
		return mailbox.Result{}, context.Cause(ctx)
	}
}

func (s *steered) Steer(_ context.Context, _ string, c mailbox.Command) bool {
	r, err := mailbox.DecodeRequest(c.Payload)
	if err != nil || len(r.Messages) == 0 {
		return false
	}
	switch string(r.Messages[0].Data) {
	case "panic":
		panic("the runtime is broken")
	case "end":
		close(s.end)
		return true
	default:
		return false
	}
}

// testLivePanic holds that a panic of a runtime that is steered refuses the command, whoever sent it, and harms nothing else: what was
// refused is queued, and the run goes on and takes what comes next.
func testLivePanic(w *world) {
	if _, ok := w.store.(mailbox.Live); !ok {
		return // an optional ability
	}
	s := &steered{running: make(chan string, 3), end: make(chan struct{})}
	here := w.box(mailbox.Config{Store: w.store, Runtime: s})
	there := w.box(mailbox.Config{Store: w.store, Runtime: done{}, LiveWait: 20 * time.Second})
	must(w.t, here.Start(w.ctx()))
	first := w.submit(here, "t")
	run := <-s.running
	for _, from := range []*mailbox.Mailbox{there, here} {
		sub, err := from.SubmitLive(w.ctx(), mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("panic")}}}, run)
		must(w.t, err)
		equal(w.t, "taken by a run that panicked", sub.Dispatch == first.Dispatch, false)
		equal(w.t, "what was refused", w.load(sub.Dispatch).Status, mailbox.Queued)
	}
	sub, err := there.SubmitLive(w.ctx(), mailbox.Request{Thread: "t", Messages: []mailbox.Input{{Data: []byte("end")}}}, run)
	must(w.t, err)
	equal(w.t, "dispatch that took the next command", sub.Dispatch, first.Dispatch)
	d, err := here.Await(w.ctx(), first.Dispatch)
	must(w.t, err)
	equal(w.t, "status", d.Status, mailbox.Acked)
}
