package pgstore

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"sync"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

// line is a listener of this process.
type line struct {
	accept func(context.Context, mailbox.Command) bool
	turn   int64
	// busy is held while accept runs; gone is closed when the listener is.
	busy chan struct{}
	gone chan struct{}
}

// address is what a target is called in the tables.
func address(t mailbox.Target) string {
	out, err := json.Marshal([]string{t.Thread, t.Run, t.Dispatch})
	if err != nil {
		panic(err) // strings can be encoded
	}
	return string(out)
}

// Listen implements mailbox.Live. A listener of another process that is still there hears nothing more.
func (s *Store) Listen(ctx context.Context, t mailbox.Target, accept func(context.Context, mailbox.Command) bool) (stop func(), err error) {
	w := s.wire
	l := &line{accept: accept, turn: rand.Int64(), busy: make(chan struct{}, 1), gone: make(chan struct{})} //nolint:gosec // a name, not a secret
	w.mu.Lock()
	w.lines[t] = l
	node := w.node
	w.mu.Unlock()
	stop = sync.OnceFunc(func() { w.hangUp(context.WithoutCancel(ctx), t, l) })
	const sql = `INSERT INTO @.listener (target, node, turn) VALUES ($1, $2, $3)
		ON CONFLICT (target) DO UPDATE SET node = excluded.node, turn = excluded.turn`
	if _, err := s.pool.Exec(ctx, s.sql(sql), address(t), node, l.turn); err != nil {
		stop()
		return nil, broken("listen for thread", t.Thread, err)
	}
	return stop, nil
}

func (w *wire) hangUp(ctx context.Context, t mailbox.Target, l *line) {
	w.mu.Lock()
	if w.lines[t] == l {
		delete(w.lines, t)
	}
	w.mu.Unlock()
	close(l.gone)
	l.busy <- struct{}{} // accept runs no more
	ctx, cancel := context.WithTimeout(ctx, brief)
	defer cancel()
	_, err := w.s.pool.Exec(ctx, w.s.sql(`DELETE FROM @.listener WHERE target = $1 AND turn = $2`), address(t), l.turn)
	if err != nil && w.open() {
		w.s.cfg.Logger.WarnContext(ctx, "pgstore_listener_left", "thread", t.Thread, "error", err)
	}
}

// Deliver implements mailbox.Live.
func (s *Store) Deliver(ctx context.Context, t mailbox.Target, c mailbox.Command) (bool, error) {
	node, found, err := s.listener(ctx, t)
	if err != nil || !found {
		return false, broken("deliver to thread", t.Thread, err)
	}
	id := uuid.NewString()
	answer := make(chan bool, 1)
	s.wire.mu.Lock()
	s.wire.waiting[id] = answer
	s.wire.mu.Unlock()
	defer func() {
		s.wire.mu.Lock()
		delete(s.wire.waiting, id)
		s.wire.mu.Unlock()
	}()
	payload, err := json.Marshal(notice{Command: id, Node: node})
	if err != nil {
		return false, broken("deliver to thread", t.Thread, err)
	}
	const sql = `WITH sent AS (INSERT INTO @.command (id, target, kind, name, payload) VALUES ($1, $2, $3, $4, $5)) SELECT pg_notify($6, $7)`
	_, err = s.pool.Exec(ctx, s.sql(sql), id, address(t), text(string(c.Kind)), text(c.ID), append([]byte{}, c.Payload...), s.wire.channel, string(payload))
	if err != nil {
		return false, broken("deliver to thread", t.Thread, err)
	}
	select {
	case ok := <-answer:
		return ok, nil
	case <-ctx.Done():
		s.wire.recall(context.WithoutCancel(ctx), id)
		return false, broken("deliver to thread", t.Thread, context.Cause(ctx))
	}
}

// listener is the connection that listens for a target, if it still is there.
func (s *Store) listener(ctx context.Context, t mailbox.Target) (node int64, found bool, err error) {
	const sql = `SELECT node, NOT pg_try_advisory_xact_lock_shared(node) FROM @.listener WHERE target = $1`
	err = s.read(ctx, func(c *pgx.Conn) error { return c.QueryRow(ctx, s.sql(sql), address(t)).Scan(&node, &found) })
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return node, found, err
}

// recall takes a command back that nobody took.
func (w *wire) recall(ctx context.Context, id string) {
	ctx, cancel := context.WithTimeout(ctx, brief)
	defer cancel()
	if _, err := w.s.pool.Exec(ctx, w.s.sql(`DELETE FROM @.command WHERE id = $1`), id); err != nil {
		w.s.cfg.Logger.WarnContext(ctx, "pgstore_command_left", "error", err)
	}
}

// take takes a command, hands it to the listener, and answers.
func (w *wire) take(ctx context.Context, id string) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	var c mailbox.Command
	var target string
	const sql = `DELETE FROM @.command WHERE id = $1 RETURNING target, kind, name, payload`
	err := w.s.pool.QueryRow(ctx, w.s.sql(sql), id).Scan(&target, textTo{(*string)(&c.Kind)}, textTo{&c.ID}, &c.Payload)
	if errors.Is(err, pgx.ErrNoRows) {
		return // whoever sent it took it back
	}
	ok := err == nil && w.hand(ctx, target, c)
	err = errors.Join(err, w.notify(ctx, notice{Answer: id, OK: ok}))
	if err != nil && ctx.Err() == nil {
		w.s.cfg.Logger.WarnContext(ctx, "pgstore_command_not_answered", "command", c.ID, "error", err)
	}
}

// hand gives a command to the listener for its target, one at a time.
func (w *wire) hand(ctx context.Context, target string, c mailbox.Command) bool {
	var t [3]string
	if json.Unmarshal([]byte(target), &t) != nil {
		return false
	}
	w.mu.Lock()
	l := w.lines[mailbox.Target{Thread: t[0], Run: t[1], Dispatch: t[2]}]
	w.mu.Unlock()
	if l == nil {
		return false
	}
	select {
	case l.busy <- struct{}{}:
	case <-l.gone:
		return false
	case <-ctx.Done():
		return false
	}
	defer func() { <-l.busy }()
	select {
	case <-l.gone:
		return false
	default:
		return l.accept(ctx, c)
	}
}
