package pgstore_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/store/pgstore"
)

type statement struct {
	sql  string
	args func(id string, now int64) []any
}

// byHand are the rows that a cycle writes, and nothing read. The tables and their indexes are the same.
func byHand() [3][]statement {
	dispatch := func(more ...any) func(string, int64) []any {
		return func(id string, now int64) []any { return append([]any{id, now}, more...) }
	}
	thread := func(id string, now int64) []any { return []any{"thread-" + id, now, "run-" + id, id, "token-" + id} }
	return [3][]statement{
		{
			{
				`INSERT INTO bare.thread VALUES ($1, '', 0, 0, 1, 1, 0, NULL, '', 0, '', NULL, '', $3, '', 'created', '', NULL, $3, '', 'created', '', NULL, '', '', NULL, $2, $2, $2, true)`,
				func(id string, now int64) []any { return thread(id, now)[:3] },
			},
			{
				`INSERT INTO bare.dispatch VALUES ($1, 'thread-' || $1, 'run-' || $1, 1, 128, 0, '', '', 'queued', $2, 0, 5, '', false, '', 0, '', '', '', '', '', '', '', $2, $2, NULL, '', $3)`,
				dispatch(make([]byte, 200)),
			},
			{
				`INSERT INTO bare.run VALUES ('run-' || $1, 'thread-' || $1, '', '', 'created', '', '', NULL, '', '', '', '', '{}', '', $2, NULL, NULL, $2)`,
				dispatch(),
			},
		},
		{
			{
				`UPDATE bare.dispatch SET status = 'claimed', token = 'token-' || $1, fence = 1, owner = 'worker', instance = 'instance-' || $1, run_status = 'running', updated_at = $2
					WHERE id = $1 AND status = 'queued'`,
				dispatch(),
			},
			{
				`UPDATE bare.run SET status = 'running', dispatch = $1, session = 'instance-' || $1, started_at = $2, updated_at = $2 WHERE id = 'run-' || $1`,
				dispatch(),
			},
			{
				`UPDATE bare.thread SET fence = 1, queued = 0, claim_dispatch = $4, claim_token = $5, claim_fence = 1, claim_owner = 'worker', claim_until = $2::bigint + 60000,
					latest_run = $3, latest_status = 'running', open_status = 'running', due_at = $2 + 60000, rank = $2 + 60000, updated_at = $2, ready = false WHERE id = $1`,
				thread,
			},
		},
		{
			{
				`UPDATE bare.dispatch SET status = 'acked', claim_end = 'settled', run_status = 'done', termination = 'natural', updated_at = $2, completed_at = $2
					WHERE id = $1 AND token = 'token-' || $1`,
				dispatch(),
			},
			{
				`UPDATE bare.run SET status = 'done', termination = 'natural', finished_at = $2, updated_at = $2 WHERE id = 'run-' || $1`,
				dispatch(),
			},
			{
				`UPDATE bare.thread SET claim_dispatch = NULL, claim_token = '', claim_fence = 0, claim_owner = '', claim_until = NULL,
					latest_status = 'done', open_run = '', open_status = '', due_at = NULL, rank = 0, updated_at = $2, ready = false WHERE id = $1`,
				func(id string, now int64) []any { return thread(id, now)[:2] },
			},
		},
	}
}

// pipelined makes the three transactions in one round trip each, plain as one writes them, with a
// round trip for each statement.
func pipelined(ctx context.Context, c *pgx.Conn, id string) error {
	for _, list := range byHand() {
		b := &pgx.Batch{}
		for _, s := range list {
			b.Queue(s.sql, s.args(id, time.Now().UnixMilli())...)
		}
		if err := c.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
	}
	return nil
}

func plain(ctx context.Context, c *pgx.Conn, id string) error {
	for _, list := range byHand() {
		err := pgx.BeginFunc(ctx, c, func(tx pgx.Tx) error {
			for _, s := range list {
				if _, err := tx.Exec(ctx, s.sql, s.args(id, time.Now().UnixMilli())...); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// BenchmarkCycle compares submit, claim and acknowledge with the same three transactions by hand, in
// blocks that take turns in one run. CPU is that of this process and of the server.
func BenchmarkCycle(b *testing.B) {
	const block, rounds = 100, 9
	server := durable(b)
	store := open(b, pgstore.Config{URL: server.URL(), Conns: 2})
	ours := newQueue(b, store)
	open(b, pgstore.Config{URL: server.URL(), Schema: "bare"})
	conn := connect(b, pgstore.Config{URL: server.URL()})
	n := 0
	contestants := []struct {
		name string
		do   func(id string) error
	}{
		{"bare", func(id string) error { return pipelined(b.Context(), conn, id) }},
		{"plain", func(id string) error { return plain(b.Context(), conn, id) }},
		{"ours", func(id string) error { return cycle(b.Context(), ours, id) }},
	}
	costs := map[string][]cost{}
	for b.Loop() {
		for range rounds {
			for _, c := range contestants {
				costs[c.name] = append(costs[c.name], measure(b, conn, server, func() {
					for range block {
						n++
						if err := c.do(fmt.Sprintf("%08d", n)); err != nil {
							b.Fatal(err)
						}
					}
					if err := store.Exec(b.Context(), `SELECT pg_stat_force_next_flush()`); err != nil {
						b.Fatal(err)
					}
				}))
			}
		}
	}
	of := func(name string, figure func(cost) float64) float64 { return median(costs[name], figure) / block }
	for _, c := range contestants {
		b.ReportMetric(of(c.name, wall)/1e3, c.name+"-us")
		b.ReportMetric(of(c.name, cpu)/1e3, c.name+"-cpu-us")
		b.ReportMetric(of(c.name, serverCPU)/1e3, c.name+"-server-us")
		b.ReportMetric(of(c.name, flushed), c.name+"-flushes")
	}
	for _, c := range contestants[:2] {
		b.ReportMetric(of("ours", wall)/of(c.name, wall), "wall/"+c.name)
		b.ReportMetric(of("ours", cpu)/of(c.name, cpu), "cpu/"+c.name)
	}
}

// median takes the middle of one figure of several blocks.
func median(costs []cost, of func(cost) float64) float64 {
	var all []float64
	for _, c := range costs {
		all = append(all, of(c))
	}
	slices.Sort(all)
	return all[len(all)/2]
}

func wall(c cost) float64      { return float64(c.wall) }
func cpu(c cost) float64       { return float64(c.own + c.server) }
func serverCPU(c cost) float64 { return float64(c.server) }
func flushed(c cost) float64   { return float64(c.flushes) }
