package sqlitestore_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

func benchQueue(tb testing.TB, s mailbox.Store) *mailbox.Queue {
	tb.Helper()
	q, err := mailbox.NewQueue(mailbox.QueueConfig{Store: s, Depth: 1 << 30})
	if err != nil {
		tb.Fatal(err)
	}
	return q
}

// cycle submits, claims and acknowledges on a thread of its own.
func cycle(ctx context.Context, q *mailbox.Queue, id string) error {
	thread := "thread-" + id
	_, err := q.Enqueue(ctx, mailbox.Entry{ID: id, Thread: thread, NewRun: "run-" + id, Priority: mailbox.PriorityDefault, MaxAttempts: 5, Request: make([]byte, 200)})
	if err != nil {
		return err
	}
	k, ok, err := q.Claim(ctx, thread, mailbox.ClaimRequest{Token: "token-" + id, Owner: "worker", Lease: time.Minute, Instance: "instance-" + id})
	if err != nil || !ok {
		return fmt.Errorf("claimed: %v, %w", ok, err)
	}
	_, err = q.Settle(ctx, mailbox.Hold{Thread: thread, Dispatch: k.Dispatch.ID, Token: k.Dispatch.Token}, mailbox.Settlement{
		Verdict: mailbox.Ack, Result: mailbox.Result{Status: mailbox.RunDone, Termination: "natural"},
	})
	return err
}

// bare makes the same three transactions by hand: the rows that a cycle writes, and nothing read.
type bare struct {
	db    *sql.DB
	conn  *sql.Conn
	stmts [3][]*sql.Stmt
}

func openBare(tb testing.TB, path string) *bare {
	tb.Helper()
	db, err := sql.Open("sqlite", "file:"+path+"?_pragma=synchronous(FULL)&_pragma=cache_size(-16000)")
	if err != nil {
		tb.Fatal(err)
	}
	conn, err := db.Conn(tb.Context())
	if err != nil {
		tb.Fatal(err)
	}
	b := &bare{db: db, conn: conn}
	for i, list := range [][]string{
		{
			`INSERT INTO dispatch VALUES (?1, ?2, ?3, 1, 128, 0, '', 'user', 'queued', ?4, 0, 5, '', 0, '', 0, '', '', '', '', '', '', '', ?4, ?4, NULL, '')`,
			`INSERT INTO request VALUES (?1, ?5)`,
			`INSERT INTO run VALUES (?3, ?2, '', '', 'created', '', '', NULL, '', '', '', '', '', ?4, NULL, NULL, ?4)`,
			`INSERT INTO thread VALUES (?2, '', 0, 0, 1, 1, 0, NULL, NULL, NULL, NULL, NULL, NULL, ?3, '', 'created', '', NULL, ?3, '', 'created', '', NULL, '', '', NULL, ?4, ?4, ?4, 1)`,
			`UPDATE tally SET queued = queued + 1`,
		},
		{
			`UPDATE dispatch SET status = 'claimed', token = ?6, fence = 1, owner = 'worker', instance = ?7, run_status = 'running', updated_at = ?4 WHERE id = ?1 AND status = 'queued'`,
			`UPDATE run SET status = 'running', dispatch = ?1, session = ?7, started_at = ?4, updated_at = ?4 WHERE id = ?3`,
			`UPDATE thread SET fence = 1, queued = 0, claim_dispatch = ?1, claim_token = ?6, claim_fence = 1, claim_owner = 'worker', claim_until = ?4 + 60000, claim_stop = '',
				latest_status = 'running', open_status = 'running', due_at = ?4 + 60000, rank = ?4 + 60000, updated_at = ?4, ready = 0 WHERE id = ?2`,
			`UPDATE tally SET queued = queued - 1, claimed = claimed + 1`,
		},
		{
			`UPDATE dispatch SET status = 'acked', claim_end = 'settled', run_status = 'done', termination = 'natural', updated_at = ?4, completed_at = ?4 WHERE id = ?1 AND token = ?6`,
			`UPDATE run SET status = 'done', termination = 'natural', finished_at = ?4, updated_at = ?4 WHERE id = ?3`,
			`UPDATE thread SET claim_dispatch = NULL, claim_token = NULL, claim_fence = NULL, claim_owner = NULL, claim_until = NULL, claim_stop = NULL,
				latest_status = 'done', open_run = '', open_status = '', due_at = NULL, rank = 0, updated_at = ?4 WHERE id = ?2`,
			`UPDATE tally SET claimed = claimed - 1, acked = acked + 1`,
		},
	} {
		for _, text := range list {
			stmt, err := conn.PrepareContext(tb.Context(), text) //nolint:sqlclosecheck // closed with the connection
			if err != nil {
				tb.Fatal(err)
			}
			b.stmts[i] = append(b.stmts[i], stmt)
		}
	}
	tb.Cleanup(func() { _ = conn.Close(); _ = db.Close() })
	return b
}

func (b *bare) cycle(id string) error {
	ctx := context.Background()
	now := time.Now().UnixMilli()
	args := []any{id, "thread-" + id, "run-" + id, now, make([]byte, 200), "token-" + id, "instance-" + id}
	for _, transaction := range b.stmts {
		if _, err := b.conn.ExecContext(ctx, "BEGIN IMMEDIATE"); err != nil {
			return err
		}
		for _, stmt := range transaction {
			if _, err := stmt.ExecContext(ctx, args...); err != nil {
				return err
			}
		}
		if _, err := b.conn.ExecContext(ctx, "COMMIT"); err != nil {
			return err
		}
	}
	return nil
}

// cost is what one block of work took.
type cost struct {
	wall, cpu time.Duration
	flushes   int64
}

func measure(work func()) cost {
	count, used, start := flushes.Load(), processorTime(), time.Now()
	work()
	return cost{wall: time.Since(start), cpu: processorTime() - used, flushes: flushes.Load() - count}
}

// median takes the middle of one figure of several blocks, per cycle.
func median(costs []cost, cycles int, of func(cost) float64) float64 {
	var all []float64
	for _, c := range costs {
		all = append(all, of(c)/float64(cycles))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func wall(c cost) float64    { return float64(c.wall) }
func cpu(c cost) float64     { return float64(c.cpu) }
func flushed(c cost) float64 { return float64(c.flushes) }

// BenchmarkCycle compares submit, claim and acknowledge with the same three transactions by hand,
// in blocks that take turns in one run.
func BenchmarkCycle(b *testing.B) {
	countFlushes()
	const block, writers = 150, 8
	ours := open(b, filepath.Join(b.TempDir(), "ours.db"))
	q := benchQueue(b, ours)
	path := filepath.Join(b.TempDir(), "bare.db")
	empty, err := sqlitestore.Open(b.Context(), sqlitestore.Config{Path: path})
	if err == nil {
		err = empty.Close(b.Context())
	}
	if err != nil {
		b.Fatal(err)
	}
	hand := openBare(b, path)
	n := 0
	do := func(what func(id string) error) func() {
		return func() {
			for range block {
				n++
				if err := what(fmt.Sprintf("%08d", n)); err != nil {
					b.Fatal(err)
				}
			}
		}
	}
	serial := do(func(id string) error { return cycle(b.Context(), q, id) })
	byHand := do(hand.cycle)
	grouped := func() {
		var wg sync.WaitGroup
		for w := range writers {
			n++
			first := n
			wg.Go(func() {
				for i := range block / writers {
					if err := cycle(b.Context(), q, fmt.Sprintf("g%d-%08d-%d", w, first, i)); err != nil {
						b.Error(err)
					}
				}
			})
		}
		wg.Wait()
	}
	var bares, serials, groups []cost
	for b.Loop() {
		for range 9 {
			bares = append(bares, measure(byHand))
			serials = append(serials, measure(serial))
			groups = append(groups, measure(grouped))
		}
	}
	groupBlock := block / writers * writers
	b.ReportMetric(median(bares, block, wall)/1e3, "bare-us/cycle")
	b.ReportMetric(median(serials, block, wall)/1e3, "serial-us/cycle")
	b.ReportMetric(median(groups, groupBlock, wall)/1e3, "grouped-us/cycle")
	b.ReportMetric(median(serials, block, wall)/median(bares, block, wall), "wall-ratio")
	b.ReportMetric(median(serials, block, cpu)/median(bares, block, cpu), "cpu-ratio")
	b.ReportMetric(median(groups, groupBlock, cpu)/median(bares, block, cpu), "grouped-cpu-ratio")
	b.ReportMetric(median(bares, block, flushed), "bare-flushes/cycle")
	b.ReportMetric(median(serials, block, flushed), "serial-flushes/cycle")
	b.ReportMetric(median(groups, groupBlock, flushed), "grouped-flushes/cycle")
}
