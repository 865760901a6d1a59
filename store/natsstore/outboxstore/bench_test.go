package outboxstore_test

import (
	"errors"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
	"github.com/mortise-dev/mortise/store/natsstore/outboxstore"
)

func newStore(b *testing.B) *outboxstore.Store {
	b.Helper()
	s, err := outboxstore.New(b.Context(), servertest.Open(b), outboxstore.Config{})
	if err != nil {
		b.Fatal(err)
	}
	return s
}

func appendAndRemove(b *testing.B, s *outboxstore.Store, thread string) {
	b.Helper()
	seq, err := s.Append(b.Context(), outbox.Change{Thread: thread, Data: []byte("the build is done")})
	if err == nil {
		err = s.Remove(b.Context(), thread, seq)
	}
	if err != nil {
		b.Error(err)
	}
}

// BenchmarkEntry queues an entry and removes it, beside one that stays.
func BenchmarkEntry(b *testing.B) {
	s := newStore(b)
	if _, err := s.Append(b.Context(), entry("kept")); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		appendAndRemove(b, s, "t")
	}
}

// BenchmarkEntryOfMany does the same from 16 goroutines for one thread, which share messages.
func BenchmarkEntryOfMany(b *testing.B) {
	s := newStore(b)
	if _, err := s.Append(b.Context(), entry("kept")); err != nil {
		b.Fatal(err)
	}
	b.SetParallelism(16)
	b.ResetTimer()
	b.RunParallel(func(p *testing.PB) {
		for p.Next() {
			appendAndRemove(b, s, "t")
		}
	})
}

// BenchmarkBare writes two messages with nothing around them: what [BenchmarkEntry] is measured against.
func BenchmarkBare(b *testing.B) {
	nc, err := nats.Connect(servertest.URL(b))
	if err != nil {
		b.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		b.Fatal(err)
	}
	if _, err := js.CreateStream(b.Context(), jetstream.StreamConfig{Name: "bare", Subjects: []string{"bare.>"}}); err != nil && !errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
		b.Fatal(err)
	}
	data := make([]byte, 200)
	for b.Loop() {
		for range 2 {
			if _, err := js.Publish(b.Context(), "bare.x", data); err != nil {
				b.Fatal(err)
			}
		}
	}
}
