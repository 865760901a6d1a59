package natsstore_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// A stream has one record that will be dropped one day, so that its server knows when to look for such records next; whoever opens
// it again writes no other.
func TestAlarm(t *testing.T) {
	t.Parallel()
	const name = "alarm"
	open(t, named(name))
	open(t, named(name))
	s := servertest.Stream(t, name)
	msg, err := s.GetLastMsgForSubject(t.Context(), name+".t")
	if err != nil {
		t.Fatal(err)
	}
	ttl, err := time.ParseDuration(msg.Header.Get(jetstream.MsgTTLHeader))
	if err != nil || ttl < 365*24*time.Hour || msg.Sequence != 1 {
		t.Errorf("record %d has a time to live of %s (%v), want record 1 and years", msg.Sequence, ttl, err)
	}
	if n := s.CachedInfo().State.LastSeq; n != 1 {
		t.Errorf("the stream has had %d records, want 1", n)
	}
}

// A stream that is full is opened without the record, which is said, and gives what it has.
func TestAlarm_full(t *testing.T) {
	t.Parallel()
	const name = "alarm-full"
	_, err := open(t).Link().JS.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: name, Subjects: []string{name + ".>"}, MaxMsgsPerSubject: 1, Discard: jetstream.DiscardNew, AllowMsgTTL: true, MaxBytes: 1,
	})
	if err != nil {
		t.Fatal(err)
	}
	var log bytes.Buffer
	s, err := natsstore.Open(t.Context(), natsstore.Config{URL: servertest.URL(t), Name: name, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close(context.WithoutCancel(t.Context())) })
	if !strings.Contains(log.String(), "natsstore_alarm_not_set") {
		t.Errorf("nothing is said of it in\n%s", log.String())
	}
	if got, err := s.Load(t.Context(), "t", mailbox.Need{}); err != nil || got.Head.Seq != 0 {
		t.Errorf("it gives %+v, %v", got.Head, err)
	}
}
