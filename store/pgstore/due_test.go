package pgstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// backlog queues threads behind the store's back: n are due, n come later, each with one dispatch.
func backlog(tb testing.TB, c pgstore.Config, n int, tenant string, now time.Time) {
	tb.Helper()
	s := c.Schema
	exec(tb, c, fmt.Sprintf(`INSERT INTO %s.thread
		SELECT $2 || i, $2, 0, 0, 1, 1, 0, NULL, '', 0, '', NULL, '', 'run-' || $2 || i, '', 'created', '', NULL, 'run-' || $2 || i, '', 'created', '', NULL, '', '', NULL,
			$3::bigint + late, $3::bigint + late + i, $3, late < 0
		FROM generate_series(1, $1::bigint) i, LATERAL (SELECT CASE WHEN i %% 2 = 0 THEN 3600000 ELSE -3600000 END AS late) l`, s), 2*n, tenant, now.UnixMilli())
	exec(tb, c, fmt.Sprintf(`INSERT INTO %s.dispatch
		SELECT 'd-' || id, id, 'run-' || id, 1, 128, 0, '', '', 'queued', due_at, 0, 5, '', false, '', 0, '', '', '', '', '', '', '', due_at, due_at, NULL, '', ''
		FROM %s.thread WHERE tenant = $1`, s, s), tenant)
	exec(tb, c, fmt.Sprintf(`INSERT INTO %s.run SELECT 'run-' || id, id, '', '', 'created', '', '', NULL, '', '', '', '', '{}', '', due_at, NULL, NULL, due_at
		FROM %s.thread WHERE tenant = $1`, s, s), tenant)
}

// Tenants that have no worker free do not hide the others, however many threads they have.
func TestDue_skipsHugeTenants(t *testing.T) {
	t.Parallel()
	c := config(t)
	s := open(t, c)
	now := time.Now().Truncate(time.Millisecond)
	backlog(t, c, 1500, "a", now)
	backlog(t, c, 1500, "c", now.Add(time.Minute))
	backlog(t, c, 2, "b", now.Add(20*time.Minute))
	backlog(t, c, 2, "d", now.Add(10*time.Minute))
	heads, next, err := s.Due(t.Context(), mailbox.DueQuery{By: now, Skip: []string{"a", "c"}, Limit: 3})
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for i := range heads {
		got = append(got, heads[i].Thread)
	}
	if want := []string{"d1", "d3", "b1"}; !slices.Equal(got, want) {
		t.Errorf("due %q, want %q", got, want)
	}
	if want := now.Add(time.Hour); !next.Equal(want) {
		t.Errorf("next is %v, want %v", next, want)
	}
}

// What becomes due later is found by its rank, with what was due before, and stays where it is when
// somebody with a slower clock looks.
func TestDue_becomesReady(t *testing.T) {
	t.Parallel()
	c := config(t)
	s := open(t, c)
	now := time.Now().Truncate(time.Millisecond)
	for i, due := range []time.Duration{-time.Second, time.Second, time.Hour} {
		h := mailbox.Head{Thread: fmt.Sprint("t", i), DueAt: now.Add(due), Rank: int64(-i), UpdatedAt: now}
		err := s.Update(t.Context(), h.Thread, mailbox.Need{}, func(mailbox.State) (mailbox.Change, error) { return mailbox.Change{Head: &h}, nil })
		if err != nil {
			t.Fatal(err)
		}
	}
	for _, look := range []struct {
		after, next time.Duration
		want        []string
	}{
		{0, time.Second, []string{"t0"}},
		{2 * time.Second, time.Hour, []string{"t1", "t0"}},
		{0, time.Second, []string{"t0"}},
		{time.Hour, 0, []string{"t2", "t1", "t0"}},
	} {
		heads, next, err := s.Due(t.Context(), mailbox.DueQuery{By: now.Add(look.after), Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for i := range heads {
			got = append(got, heads[i].Thread)
		}
		if !slices.Equal(got, look.want) {
			t.Errorf("due after %v: %q, want %q", look.after, got, look.want)
		}
		if want := now.Add(look.next); look.next != 0 && !next.Equal(want) || look.next == 0 && !next.IsZero() {
			t.Errorf("next after %v is %v", look.after, next)
		}
	}
}
