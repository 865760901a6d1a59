package pgstore_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/pgstore"
)

// held counts claims, as a mailbox does whose claims are bounded.
func held(tb testing.TB, s mailbox.Store, want int) {
	tb.Helper()
	claims, err := s.Claims(tb.Context())
	n := 0
	for _, of := range claims {
		n += of
	}
	if err != nil || n != want {
		tb.Fatalf("claims: %v, %v; want %d", claims, err, want)
	}
}

// work looks for what is due, claims it, counts claims before and after that, and acknowledges it, n times.
func work(tb testing.TB, s mailbox.Store, q *mailbox.Queue, n int, skip ...string) {
	tb.Helper()
	for i := range n {
		heads, _, err := s.Due(tb.Context(), mailbox.DueQuery{By: time.Now(), Skip: skip, Limit: 1})
		if err != nil || len(heads) != 1 {
			tb.Fatalf("%d are due: %v", len(heads), err)
		}
		held(tb, s, 0)
		token := fmt.Sprint("token", i)
		k, ok, err := q.Claim(tb.Context(), heads[0].Thread, mailbox.ClaimRequest{Token: token, Owner: "w", Lease: time.Hour})
		if err != nil || !ok {
			tb.Fatalf("claimed: %v, %v", ok, err)
		}
		held(tb, s, 1)
		if _, err := q.Settle(tb.Context(), mailbox.Hold{Thread: heads[0].Thread, Dispatch: k.Dispatch.ID, Token: token}, mailbox.Settlement{Verdict: mailbox.Ack}); err != nil {
			tb.Fatal(err)
		}
	}
}

// busy queues many dispatches in one thread, as backlog does for many threads: half of them are due.
func busy(tb testing.TB, c pgstore.Config, thread string, n int, now time.Time) {
	tb.Helper()
	exec(tb, c, fmt.Sprintf(`UPDATE %s.thread SET seq = $2 + 1, queued = $2 + 1 WHERE id = $1`, c.Schema), thread, int64(n))
	exec(tb, c, fmt.Sprintf(`INSERT INTO %s.dispatch
		SELECT 'more-' || i, $1, 'run-' || $1, i + 1, 128, 0, '', '', 'queued', $3::bigint + CASE WHEN i %% 2 = 0 THEN 3600000 ELSE 0 END, 0, 5, '', false,
			'', 0, '', '', '', '', '', '', '', $3, $3, NULL, '', '' FROM generate_series(1, $2::bigint) i`, c.Schema), thread, int64(n), now.UnixMilli())
}

// What a look, a claim and an acknowledgement read does not depend on how much else is queued: due or
// later, in other threads or in the same one; also where the plans were made when the tables were empty.
func TestStore_readsAsMuchWithABacklog(t *testing.T) {
	t.Parallel()
	read := map[int]int64{}
	for _, n := range []int{50, 5000} {
		c := config(t)
		c.Conns = 1
		s := open(t, c)
		q := newQueue(t, s)
		for i := range 10 {
			submit(t, s, fmt.Sprint("first", i), fmt.Sprint("first", i))
		}
		work(t, s, q, 5)
		work(t, s, q, 5, "nobody")
		now := time.Now()
		backlog(t, c, n, "a", now)
		backlog(t, c, n, "z", now.Add(time.Second))
		busy(t, c, "z1", n, now)
		work(t, s, q, 5)
		if err := s.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
			t.Fatal(err)
		}
		conn := connect(t, c)
		before := tuples(t, conn, c.Schema)
		work(t, s, q, 20)
		work(t, s, q, 20, "nobody")
		if err := s.Exec(t.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
			t.Fatal(err)
		}
		read[n] = tuples(t, conn, c.Schema) - before
	}
	t.Logf("read by 40 cycles, by backlog: %v", read)
	if read[50] == 0 || read[5000] > read[50]*3/2 {
		t.Errorf("40 cycles read, by backlog: %v entries of indexes and tables", read)
	}
}

// tuples is how many entries of tables and indexes were read.
func tuples(tb testing.TB, conn *pgx.Conn, schema string) (n int64) {
	tb.Helper()
	err := conn.QueryRow(tb.Context(), `SELECT (SELECT sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_user_tables WHERE schemaname = $1)::bigint +
		(SELECT sum(idx_tup_read) FROM pg_stat_user_indexes WHERE schemaname = $1)::bigint`, schema).Scan(&n)
	if err != nil {
		tb.Fatal(err)
	}
	return n
}

// BenchmarkBacklog looks, claims and acknowledges with 20 and with a million dispatches queued, half of them
// due, in blocks that take turns; before each block come as many as it takes.
func BenchmarkBacklog(b *testing.B) {
	const block, rounds, few, many = 50, 7, 10, 500_000
	server := durable(b)
	now := time.Now()
	stores, queues, configs := map[int]*pgstore.Store{}, map[int]*mailbox.Queue{}, map[int]pgstore.Config{}
	conn := connect(b, pgstore.Config{URL: server.URL()})
	for _, n := range []int{few, many} {
		c := pgstore.Config{URL: server.URL(), Schema: fmt.Sprint("queued_", n)}
		configs[n] = c
		stores[n] = open(b, c)
		queues[n] = newQueue(b, stores[n])
		backlog(b, c, n, "a", now)
		work(b, stores[n], queues[n], 5)
	}
	exec(b, pgstore.Config{URL: server.URL()}, `CHECKPOINT`)
	costs := map[int][]cost{}
	for i := 0; b.Loop(); i++ {
		for j := range rounds {
			for _, n := range []int{few, many} {
				backlog(b, configs[n], block, fmt.Sprintf("r%d-%d-", i, j), now.Add(-time.Minute))
				costs[n] = append(costs[n], measure(b, conn, server, func() { work(b, stores[n], queues[n], block) }))
			}
		}
	}
	for n, name := range map[int]string{few: "few", many: "million"} {
		b.ReportMetric(median(costs[n], wall)/block/1e3, name+"-us")
		b.ReportMetric(median(costs[n], cpu)/block/1e3, name+"-cpu-us")
	}
	b.ReportMetric(median(costs[many], wall)/median(costs[few], wall), "wall-ratio")
	b.ReportMetric(median(costs[many], cpu)/median(costs[few], cpu), "cpu-ratio")
}

// BenchmarkWorkers lets eight workers of two pools look, claim and acknowledge, four threads at a look.
func BenchmarkWorkers(b *testing.B) {
	const workers, atOnce, cycles = 8, 4, 500
	server := durable(b)
	c := pgstore.Config{URL: server.URL(), Schema: pgstore.DefaultSchema}
	stores := []*pgstore.Store{open(b, c), open(b, c)}
	var done, late atomic.Int64
	var spent time.Duration
	for n := 0; b.Loop(); n++ {
		backlog(b, c, cycles+workers*atOnce, fmt.Sprint("n", n, "-"), time.Now())
		end := done.Load() + cycles
		start := time.Now()
		var wg sync.WaitGroup
		for i := range workers {
			s := stores[i%2]
			q := newQueue(b, s)
			wg.Go(func() {
				for m := 0; done.Load() < end && !b.Failed(); m++ {
					heads, _, err := s.Due(b.Context(), mailbox.DueQuery{By: time.Now(), Limit: atOnce})
					for j := range heads {
						var did bool
						if did, err = settled(b, q, heads[j].Thread, fmt.Sprint(n, "-", i, "-", m, "-", j)); did {
							done.Add(1)
						} else {
							late.Add(1)
						}
					}
					if err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
		spent += time.Since(start)
	}
	b.ReportMetric(float64(done.Load())/spent.Seconds(), "cycles/s")
	b.ReportMetric(float64(late.Load())/float64(done.Load()), "late-claims/cycle")
}

// settled claims and acknowledges, if nobody else did.
func settled(tb testing.TB, q *mailbox.Queue, thread, token string) (bool, error) {
	tb.Helper()
	k, ok, err := q.Claim(tb.Context(), thread, mailbox.ClaimRequest{Token: token, Owner: "w", Lease: time.Hour})
	if err != nil || !ok {
		return false, err
	}
	_, err = q.Settle(tb.Context(), mailbox.Hold{Thread: thread, Dispatch: k.Dispatch.ID, Token: token}, mailbox.Settlement{Verdict: mailbox.Ack})
	return true, err
}
