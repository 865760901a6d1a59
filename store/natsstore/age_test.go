package natsstore_test

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// TestEvents_age holds that servers keep events for as long as a mailbox wants, which others do not make shorter, and drop what is
// older than it wants.
func TestEvents_age(t *testing.T) {
	t.Parallel()
	one, other := open(t, named("age")), open(t, named("age"))
	nc, err := nats.Connect(servertest.URL(t))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	state := func() *jetstream.StreamInfo {
		t.Helper()
		s, err := js.Stream(t.Context(), "age-events")
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo()
	}
	if err := one.PurgeEvents(t.Context(), time.Now()); err != nil {
		t.Errorf("a purge before there are any: %v", err)
	}
	add := func(n uint64) time.Time {
		t.Helper()
		if _, err := one.AppendEvents(t.Context(), mailbox.EventBatch{Stream: "d", Fence: 1, First: n, Last: n}); err != nil {
			t.Fatal(err)
		}
		return state().State.LastTime
	}
	add(1)
	if age := state().Config.MaxAge; age != mailbox.DefaultEventTTL {
		t.Errorf("events are kept for %v at first", age)
	}
	for _, c := range []struct {
		by        mailbox.EventLog
		ttl, want time.Duration
	}{{one, 3 * time.Hour, 3 * time.Hour}, {other, 2 * time.Hour, 3 * time.Hour}, {one, time.Minute, 3 * time.Hour}, {other, 26 * time.Hour, 26 * time.Hour}} {
		if err := c.by.PurgeEvents(t.Context(), time.Now().Add(-c.ttl)); err != nil {
			t.Fatal(err)
		}
		if info := state(); info.Config.MaxAge != c.want || info.State.Msgs != 1 {
			t.Errorf("after a purge of what is older than %v, %d are kept for %v", c.ttl, info.State.Msgs, info.Config.MaxAge)
		}
	}
	last := add(2)
	if err := other.PurgeEvents(t.Context(), last); err != nil {
		t.Fatal(err)
	}
	list, err := one.ReadEvents(t.Context(), "d", 0, 9, 0)
	if err != nil || len(list) != 1 || list[0].First != 2 {
		t.Errorf("%v are left, want the second: %v", list, err)
	}
}
