package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

// notice is what goes through NOTIFY: signals, dispatches that have new events, a command for a node, or the answer to one.
// PostgreSQL bounds it to 8000 bytes.
type notice struct {
	Signals [][2]string `json:"s,omitempty"`
	Command string      `json:"c,omitempty"`
	Node    int64       `json:"n,omitempty"`
	Answer  string      `json:"a,omitempty"`
	OK      bool        `json:"ok,omitempty"`
	Events  []string    `json:"e,omitempty"`
}

// alive is how often a quiet connection is asked whether it still is one; and how long a step
// of housekeeping may take.
const (
	alive = 30 * time.Second
	brief = 5 * time.Second
)

// wire carries notices between the processes that share a schema.
type wire struct {
	s       *Store
	channel string
	stop    context.CancelFunc
	closed  atomic.Bool
	work    sync.WaitGroup
	out     signals // to be told
	in      signals // to be pulled
	// watchers are those who wait for events.
	watchers watchers

	mu sync.Mutex
	// node names the connection that listens, to those that send to it.
	node    int64
	lines   map[mailbox.Target]*line
	waiting map[string]chan bool
}

// listen opens the wire.
func (s *Store) listen(ctx context.Context) error {
	w := &wire{
		s: s, channel: "mortise_" + s.cfg.Schema, out: newSignals(), in: newSignals(),
		watchers: watchers{open: map[string]*watcher{}},
		lines:    map[mailbox.Target]*line{}, waiting: map[string]chan bool{},
	}
	conn, err := w.connect(ctx)
	if err != nil {
		return err
	}
	s.wire = w
	ctx, w.stop = context.WithCancel(context.WithoutCancel(ctx))
	w.work.Go(func() { w.hear(ctx, conn) })
	w.work.Go(func() { w.telling(ctx) })
	return nil
}

func (w *wire) open() bool { return !w.closed.Load() }

func (w *wire) close(ctx context.Context) error {
	w.closed.Store(true)
	w.stop()
	done := make(chan struct{})
	go func() {
		w.work.Wait()
		close(done)
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// connect makes a connection that listens, under a new name, and moves the listeners of this
// process to it. The name is locked while the connection lives, so that others can tell.
func (w *wire) connect(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, alive)
	defer cancel()
	conn, err := pgx.ConnectConfig(ctx, w.s.pool.Config().ConnConfig)
	if err != nil {
		return nil, err
	}
	node := rand.Int64() //nolint:gosec // a name, not a secret
	if err := w.introduce(ctx, conn, node); err != nil {
		return nil, errors.Join(err, conn.Close(ctx))
	}
	return conn, nil
}

func (w *wire) introduce(ctx context.Context, conn *pgx.Conn, node int64) error {
	if _, err := conn.Exec(ctx, `LISTEN `+pgx.Identifier{w.channel}.Sanitize()); err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, `SELECT pg_advisory_lock($1)`, node); err != nil {
		return err
	}
	w.mu.Lock()
	w.node = node
	var targets []string
	var turns []int64
	for t, l := range w.lines {
		targets, turns = append(targets, address(t)), append(turns, l.turn)
	}
	w.mu.Unlock()
	b := &pgx.Batch{}
	// What is left of processes that are gone.
	w.s.queue(b, `DELETE FROM @.listener WHERE pg_try_advisory_xact_lock_shared(node)`)
	w.s.queue(b, `DELETE FROM @.command WHERE sent_at < now() - interval '1 hour'`)
	w.s.queue(b, `INSERT INTO @.listener (target, node, turn) SELECT t, $1, n FROM unnest($2::text[], $3::bigint[]) AS l(t, n)
		ON CONFLICT (target) DO UPDATE SET node = excluded.node, turn = excluded.turn`, node, targets, turns)
	return conn.SendBatch(ctx, b).Close()
}

// hear takes notices, over a new connection when one breaks, until ctx is done.
func (w *wire) hear(ctx context.Context, conn *pgx.Conn) {
	for n := 0; ; n++ {
		if conn != nil {
			n = 0
			err := w.receive(ctx, conn)
			closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), brief)
			_ = conn.Close(closing) // it broke, or is not needed any more
			cancel()
			if ctx.Err() != nil {
				return
			}
			w.s.cfg.Logger.WarnContext(ctx, "pgstore_listening_interrupted", "error", err)
		}
		if !pause(ctx, min(n, 11)) {
			return
		}
		var err error
		if conn, err = w.connect(ctx); err != nil {
			w.s.cfg.Logger.WarnContext(ctx, "pgstore_not_listening", "error", err)
			conn = nil
		}
	}
}

func (w *wire) receive(ctx context.Context, conn *pgx.Conn) error {
	for {
		quiet, cancel := context.WithTimeout(ctx, alive)
		got, err := conn.WaitForNotification(quiet)
		over := quiet.Err() != nil
		cancel()
		switch {
		case err == nil:
			w.took(ctx, got.Payload)
		case ctx.Err() != nil || !over || conn.IsClosed():
			return err
		default:
			asking, cancel := context.WithTimeout(ctx, brief)
			err = conn.Ping(asking)
			cancel()
			if err != nil {
				return err
			}
		}
	}
}

// took handles a notice. What it cannot read is not from us.
func (w *wire) took(ctx context.Context, payload string) {
	var n notice
	if json.Unmarshal([]byte(payload), &n) != nil {
		return
	}
	for _, s := range n.Signals {
		w.in.add(mailbox.Signal{Thread: s[0], Dispatch: s[1]})
	}
	w.watchers.ring(n.Events)
	w.mu.Lock()
	mine := n.Node == w.node
	answer := w.waiting[n.Answer]
	w.mu.Unlock()
	if n.Command != "" && mine {
		w.work.Go(func() { w.take(ctx, n.Command) })
	}
	if n.Answer != "" && answer != nil {
		select {
		case answer <- n.OK:
		default: // it came twice
		}
	}
}

// notify sends notices in one transaction.
func (w *wire) notify(ctx context.Context, list ...notice) error {
	payloads := make([]string, 0, len(list))
	for i := range list {
		p, err := json.Marshal(list[i])
		if err != nil {
			return err
		}
		payloads = append(payloads, string(p))
	}
	_, err := w.s.pool.Exec(ctx, `SELECT pg_notify($1, p) FROM unnest($2::text[]) p`, w.channel, payloads)
	return err
}
