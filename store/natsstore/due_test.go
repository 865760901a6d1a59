package natsstore_test

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// What is due is the same to everybody who asks for the same time, whoever asked before with another clock, and also behind many
// threads of tenants that are left out.
func TestDue(t *testing.T) {
	t.Parallel()
	const busy = 300
	store := open(t)
	now := time.Now().UTC().Truncate(time.Millisecond)
	q := newQueue(t, store, func() time.Time { return now })
	add := func(tenant, thread string, delay time.Duration) {
		e := newEntry(thread, "of "+thread)
		e.Tenant, e.AvailableAt = tenant, now.Add(delay)
		if _, err := q.Enqueue(t.Context(), e); err != nil {
			t.Error(err)
		}
	}
	var wg sync.WaitGroup
	for w := range 10 {
		wg.Go(func() {
			for i := range busy / 10 {
				add("busy", fmt.Sprintf("busy-%d-%d", w, i), 0)
			}
		})
	}
	wg.Wait()
	for i := range 4 {
		add(fmt.Sprint("tenant", i%2), fmt.Sprint("t", i), time.Duration(i)*time.Minute)
	}
	for _, c := range []struct {
		after time.Duration
		limit int
		want  []string
		next  time.Duration
	}{
		{0, 9, []string{"t0"}, time.Minute},
		{time.Hour, 9, []string{"t0", "t1", "t2", "t3"}, 0},
		{2 * time.Minute, 9, []string{"t0", "t1", "t2"}, 3 * time.Minute},
		{time.Hour, 2, []string{"t0", "t1"}, 0},
		{0, 1, []string{"t0"}, time.Minute},
	} {
		heads, next, err := store.Due(t.Context(), mailbox.DueQuery{By: now.Add(c.after), Skip: []string{"busy"}, Limit: c.limit})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range heads {
			got = append(got, heads[i].Thread)
		}
		var wantNext time.Time
		if c.next != 0 {
			wantNext = now.Add(c.next)
		}
		if !slices.Equal(got, c.want) || !next.Equal(wantNext) {
			t.Errorf("after %v: %v, then at %v; want %v, then at %v", c.after, got, next, c.want, wantNext)
		}
	}
	heads, _, err := store.Due(t.Context(), mailbox.DueQuery{By: now.Add(time.Hour), Limit: 2 * busy})
	if err != nil || len(heads) != busy+4 {
		t.Errorf("%d threads are due, want %d: %v", len(heads), busy+4, err)
	}
}
