package pgstore_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// TestNotify holds that topics are notified whose batches are applied while others are notified.
func TestNotify(t *testing.T) {
	t.Parallel()
	s := open(t, config(t))
	topics := []string{"one", "two"}
	var watches []<-chan struct{}
	for _, topic := range topics {
		w, err := s.Watch(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		watches = append(watches, w)
	}
	for round := range 100 { // some meet
		for i, topic := range topics {
			<-time.After(time.Duration(i*(round%20)) * 100 * time.Microsecond)
			applied(t, s, store.Batch{Thread: topic, Base: store.AnyRevision, Notify: []string{topic}, Append: []store.Entry{{Log: "l"}}})
		}
		for i, w := range watches {
			select {
			case <-w:
			case <-time.After(10 * time.Second):
				t.Fatalf("topic %s is not notified", topics[i])
			}
		}
	}
}

// lines is a log of several goroutines.
type lines struct {
	mu sync.Mutex
	bytes.Buffer
}

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.Write(p)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.Buffer.String()
}

// TestNotify_closed holds that a batch which is applied while its store is being closed starts nothing.
func TestNotify_closed(t *testing.T) {
	t.Parallel()
	c := config(t)
	var log lines
	c.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r, address := newRelay(t, c.URL)
	c.URL = address
	s := open(t, c)
	before := r.trips.Load()
	r.hold.Lock()
	errs := make(chan error, 2)
	go func() {
		_, err := s.Apply(t.Context(), store.Batch{Thread: "t", Base: store.AnyRevision, Notify: []string{"topic"}, Append: []store.Entry{{Log: "l"}}})
		errs <- err
	}()
	for r.trips.Load() == before {
		<-time.After(time.Millisecond)
	}
	go func() { errs <- s.Close(context.WithoutCancel(t.Context())) }()
	<-time.After(100 * time.Millisecond) // it waits for the batch now
	r.hold.Unlock()
	for range cap(errs) {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	<-time.After(50 * time.Millisecond)
	if strings.Contains(log.String(), "pgstore_not_notified") {
		t.Error(log.String())
	}
}
