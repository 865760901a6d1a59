package sqlitestore_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// receive waits for a watch.
func receive(t *testing.T, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(10 * time.Second):
		t.Fatal("the watch received nothing")
	}
}

// TestWatch_purged holds that old notices are deleted.
func TestWatch_purged(t *testing.T) {
	t.Parallel()
	s := open(t, fresh(t))
	topics := make([]string, 2*sqlitestore.KeptNotices)
	for i := range topics {
		topics[i] = fmt.Sprint("topic", i)
	}
	_, err := s.Apply(t.Context(), store.Batch{Thread: "t", Notify: topics})
	must(t, err)
	n, err := s.Number(t.Context(), "SELECT count(*) FROM notice")
	if err != nil || n > int64(len(topics)-1) || n < sqlitestore.KeptNotices {
		t.Errorf("%d notifications, %v", n, err)
	}
}

// TestWatch_own holds that a watch does not receive a batch of its own process a second time, through the file.
func TestWatch_own(t *testing.T) {
	t.Parallel()
	path := fresh(t)
	one, other := open(t, path), open(t, path)
	own, err := one.Watch(t.Context(), "own")
	must(t, err)
	theirs, err := one.Watch(t.Context(), "theirs")
	must(t, err)
	_, err = one.Apply(t.Context(), store.Batch{Thread: "t", Notify: []string{"own"}})
	must(t, err)
	receive(t, own)
	_, err = other.Apply(t.Context(), store.Batch{Thread: "u", Notify: []string{"theirs"}})
	must(t, err)
	receive(t, theirs) // the poll that finds it has seen the earlier one
	select {
	case <-own:
		t.Error("received twice")
	default:
	}
}
