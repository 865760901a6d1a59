package sessionstore_test

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/storetest"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// TestCluster runs the contract of states on three servers.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := servertest.NewCluster(t)
	t.Run("states", func(t *testing.T) {
		t.Parallel()
		storetest.TestStore(t, func(t *testing.T) (compaction.Store, func() compaction.Store) {
			t.Helper()
			s := servertest.Open(t, c.Config)
			return open(t, s), func() compaction.Store { return open(t, s) }
		})
	})
}

// TestLeader ends the server that leads, while all is written to.
func TestLeader(t *testing.T) {
	t.Parallel()
	c := servertest.NewCluster(t)
	mailbox := servertest.Open(t, c.Config)
	s := open(t, mailbox)
	const each, stopAt = 30, 10
	var want []string
	rev := uint64(0)
	for i := range each {
		if i == stopAt {
			c.StopLeader(mailbox.Link().Name + "-sessions")
		}
		id := fmt.Sprint(i)
		if err := s.Append("t", message(id)); err != nil {
			t.Fatal(err)
		}
		want = append(want, id)
		var err error
		if rev, err = s.Swap("t", rev, compaction.State{Total: i + 1}); err != nil {
			t.Fatal(err)
		}
		if err := s.Record(compaction.Event{Thread: "t", Attempt: i}); err != nil {
			t.Fatal(err)
		}
	}
	s = open(t, mailbox)
	expect(t, s, want...)
	state, at, err := s.Load("t")
	if err != nil || at != rev || state.Total != each {
		t.Errorf("state %d at %d, want %d at %d; %v", state.Total, at, each, rev, err)
	}
	events, err := s.Events("t")
	if err != nil || len(events) != each {
		t.Fatalf("%d events, want %d; %v", len(events), each, err)
	}
	for i := range events {
		if events[i].Attempt != i {
			t.Errorf("event %d is %d", i, events[i].Attempt)
		}
	}
}
