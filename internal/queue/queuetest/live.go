package queuetest

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/store"
)

// testLive proves commands to listeners of the same process.
func testLive(t *testing.T, open func(*testing.T) store.Store) {
	t.Helper()
	live := newWorld(t, open(t)).queue
	targets := []queue.Target{{Thread: "t"}, {Thread: "t", Run: "r"}, {Thread: "t", Run: "r", Dispatch: "d"}}
	for _, target := range targets {
		if ok, err := deliver(t, live, target, "early"); ok || err != nil {
			t.Errorf("delivered without a listener: %v, %v", ok, err)
		}
	}
	received := make([][]string, len(targets))
	var stops []func()
	for i, target := range targets {
		stop, err := live.Listen(t.Context(), target, func(_ context.Context, c queue.Command) bool {
			received[i] = append(received[i], c.ID+string(c.Kind)+string(c.Payload))
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
	stop, err := live.Listen(t.Context(), targets[0], func(_ context.Context, c queue.Command) bool {
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
		same(t, "received", received[i], string(rune('a'+i))+"cancelx", "refusecancelx")
	}
	same(t, "received by the second", second, "late")
}

func deliver(t *testing.T, live *queue.Queue, target queue.Target, id string) (bool, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	return live.Deliver(ctx, target, queue.Command{Kind: queue.CommandCancel, ID: id, Payload: []byte("x")})
}
