package mailbox_test

import (
	"context"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/memstore"
)

// emitter is a runtime that sends so many events.
type emitter struct{ events int }

func (e *emitter) Run(_ context.Context, j *mailbox.Job) (mailbox.Result, error) {
	data := make([]byte, 64)
	for range e.events {
		j.Emit("token", data)
	}
	return mailbox.Result{Termination: "natural"}, nil
}

// BenchmarkEmit is what an event of 64 bytes costs a run, with its process sharing it or not.
func BenchmarkEmit(b *testing.B) {
	for name, pause := range map[string]time.Duration{"alone": -1, "shared": 100 * time.Millisecond} {
		b.Run(name, func(b *testing.B) {
			run := &emitter{events: 100_000}
			box, err := mailbox.New(b.Context(), mailbox.Config{Store: memstore.New(), Runtime: run, Events: mailbox.Events{Pause: pause}})
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				sub, err := box.Submit(b.Context(), request("t", "go"))
				if err == nil {
					_, err = box.Await(b.Context(), sub.Dispatch)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed())/float64(b.N*run.events), "ns/event")
			if err := box.Close(context.Background()); err != nil {
				b.Fatal(err)
			}
		})
	}
}
