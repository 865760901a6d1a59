package natsstore_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// Who has seen a change finds it in a listing, also while whoever made it is not back from the server.
func TestListingHasWhatIsWritten(t *testing.T) {
	t.Parallel()
	store := open(t)
	q := newQueue(t, store, time.Now)
	ctx := t.Context()
	for n := range 500 {
		thread := fmt.Sprint("t", n)
		var wg sync.WaitGroup
		wg.Go(func() {
			if _, err := q.Enqueue(ctx, newEntry(thread, "d"+thread)); err != nil {
				t.Error(err)
			}
		})
		for {
			s, err := store.Load(ctx, thread, mailbox.Need{})
			if err != nil {
				t.Fatal(err)
			}
			if s.Head.Queued > 0 {
				break
			}
		}
		heads, err := store.Threads(ctx, mailbox.ThreadQuery{Queued: true, Limit: 10_000})
		if err != nil || !slices.ContainsFunc(heads, func(h mailbox.Head) bool { return h.Thread == thread }) {
			t.Fatalf("of %d threads none is %s, which is there: %v", len(heads), thread, err)
		}
		wg.Wait()
	}
}
