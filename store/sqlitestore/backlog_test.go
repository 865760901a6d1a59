package sqlitestore_test

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// backlogEnv names the variable with the size of the large backlog.
const backlogEnv = "MORTISE_BENCH_BACKLOG"

// fill queues n dispatches, by SQL: half of them in one thread, the others in threads of their own.
const fill = `
	INSERT INTO thread SELECT 'busy', '', 0, 0, ?1, ?1, 0, NULL, NULL, NULL, NULL, NULL, NULL, '', '', '', '', NULL, '', '', '', '', NULL, '', '', NULL, ?2, ?2, ?2, 1;
	WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
	INSERT INTO dispatch SELECT printf('busy-%09d', i), 'busy', printf('run-busy-%09d', i), i, 128, 0, '', 'user', 'queued', ?2, 0, 5, '', 0, '', 0, '', '', '', '', '', '', '', ?2, ?2, NULL, '' FROM n;
	WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
	INSERT INTO thread SELECT printf('other-%09d', i), '', 0, 0, 1, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, '', '', '', '', NULL, '', '', '', '', NULL, '', '', NULL, ?2, ?2 + i, ?2, 1 FROM n;
	WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
	INSERT INTO dispatch SELECT printf('other-%09d', i), printf('other-%09d', i), printf('run-other-%09d', i), 1, 128, 0, '', 'user', 'queued', ?2, 0, 5, '', 0, '', 0, '', '', '', '', '', '', '', ?2, ?2, NULL, '' FROM n;
	UPDATE tally SET queued = queued + 2 * ?1;`

func backlog(tb testing.TB, n int) *sqlitestore.Store {
	tb.Helper()
	path := filepath.Join(tb.TempDir(), fmt.Sprint(n, ".db"))
	s, err := sqlitestore.Open(tb.Context(), sqlitestore.Config{Path: path})
	if err == nil {
		err = s.Close(tb.Context())
	}
	if err != nil {
		tb.Fatal(err)
	}
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(OFF)&_pragma=cache_size(-64000)")
	if err != nil {
		tb.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(tb.Context(), fill, n/2, time.Now().Add(-time.Hour).UnixMilli())
	if err := errors.Join(err, db.Close()); err != nil {
		tb.Fatal(err)
	}
	store := open(tb, path)
	if c, err := store.Count(tb.Context()); err != nil || c.Status[mailbox.Queued] != n {
		tb.Fatalf("%d are queued, not %d: %v", c.Status[mailbox.Queued], n, err)
	}
	list, err := store.Dispatches(tb.Context(), mailbox.DispatchQuery{Limit: n + 1})
	if err != nil || len(list) != n {
		tb.Fatalf("%d are listed, not %d: %v", len(list), n, err)
	}
	return store
}

// BenchmarkBacklog looks for what is due, claims it, counts claims and gives it back, with 10 and with many
// dispatches queued, in blocks that take turns: of the thread that is first by rank, and of one that has half of the
// backlog. Many are 100,000, or as many as the environment says.
func BenchmarkBacklog(b *testing.B) {
	many := 100_000
	if text := os.Getenv(backlogEnv); text != "" {
		var err error
		if many, err = strconv.Atoi(text); err != nil {
			b.Fatal(err)
		}
	}
	const block = 5
	costs := map[int][]cost{}
	stores := map[int]*mailbox.Queue{}
	list := map[int]*sqlitestore.Store{}
	for _, n := range []int{10, many} {
		list[n] = backlog(b, n)
		stores[n] = benchQueue(b, list[n])
	}
	tokens := 0
	work := func(n int) func() {
		return func() {
			for range block {
				heads, _, err := list[n].Due(b.Context(), mailbox.DueQuery{By: time.Now(), Limit: 5})
				if err != nil || len(heads) < 5 {
					b.Fatalf("%d are due: %v", len(heads), err)
				}
				for _, thread := range []string{heads[len(heads)-1].Thread, "busy"} {
					tokens++
					k, ok, err := stores[n].Claim(b.Context(), thread, mailbox.ClaimRequest{Token: fmt.Sprint(tokens), Owner: "o", Lease: time.Minute})
					if err != nil || !ok {
						b.Fatalf("claimed: %v, %v", ok, err)
					}
					if claims, err := list[n].Claims(b.Context()); err != nil || claims[""] != 1 {
						b.Fatalf("claims: %v, %v", claims, err)
					}
					hold := mailbox.Hold{Thread: thread, Dispatch: k.Dispatch.ID, Token: k.Dispatch.Token}
					if _, err := stores[n].Settle(b.Context(), hold, mailbox.Settlement{Verdict: mailbox.GiveBack}); err != nil {
						b.Fatal(err)
					}
				}
			}
		}
	}
	for b.Loop() {
		for range 15 {
			for _, n := range []int{10, many} {
				costs[n] = append(costs[n], measure(work(n)))
			}
		}
	}
	b.ReportMetric(median(costs[10], 2*block, cpu)/1e3, "cpu-us/few")
	b.ReportMetric(median(costs[many], 2*block, cpu)/1e3, "cpu-us/many")
	b.ReportMetric(median(costs[many], 2*block, cpu)/median(costs[10], 2*block, cpu), "cpu-ratio")
	b.ReportMetric(median(costs[many], 2*block, wall)/median(costs[10], 2*block, wall), "wall-ratio")
	b.ReportMetric(float64(many), "backlog")
}
