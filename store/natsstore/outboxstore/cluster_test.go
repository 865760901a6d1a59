package outboxstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/outbox/outboxtest"
	"github.com/mortise-dev/mortise/store/natsstore/internal/servertest"
)

// TestCluster runs the contract on three servers.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := servertest.NewCluster(t)
	t.Run("contract", func(t *testing.T) {
		t.Parallel()
		outboxtest.TestStore(t, func(t *testing.T) (outbox.Store, func() outbox.Store) {
			t.Helper()
			s := servertest.Open(t, c.Config)
			return open(t, s), func() outbox.Store { return open(t, s) }
		})
	})
}

// TestLeader ends the server that leads, under load.
func TestLeader(t *testing.T) {
	t.Parallel()
	c := servertest.NewCluster(t)
	mailbox := servertest.Open(t, c.Config)
	s := open(t, mailbox)
	const writers, before, each = 4, 20, 40
	var wrote atomic.Int64
	begun := make(chan struct{})
	var wg sync.WaitGroup
	for w := range writers {
		wg.Go(func() {
			for i := range each {
				if _, err := s.Append(t.Context(), entry(fmt.Sprint(w, "/", i))); err != nil {
					t.Error(err)
				}
				if wrote.Add(1) == before {
					close(begun)
				}
			}
		})
	}
	<-begun
	c.StopLeader(mailbox.Link().Name + "-outbox")
	wg.Wait()
	for _, s := range []outbox.Store{s, open(t, mailbox)} {
		list, err := s.Pending(t.Context(), "t", 0, 1000)
		seen := map[string]bool{}
		for _, e := range list {
			seen[string(e.Data)] = true
		}
		if err != nil || len(list) != writers*each || len(seen) != writers*each {
			t.Errorf("%d entries, %d of them different, want %d; %v", len(list), len(seen), writers*each, err)
		}
	}
}
