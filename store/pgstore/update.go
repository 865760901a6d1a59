package pgstore

import (
	"context"
	"maps"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

// Update implements mailbox.Store.
func (s *Store) Update(ctx context.Context, thread string, need mailbox.Need, decide func(mailbox.State) (mailbox.Change, error)) error {
	if change, done, err := s.swift(ctx, thread, need, decide); done || err != nil {
		if err == nil {
			s.wire.changed(thread, change)
		}
		return broken("update thread", thread, err)
	}
	err := s.try(ctx, func(c *pgx.Conn) error {
		change, err := s.transition(ctx, c, thread, need, decide)
		if err == nil {
			s.wire.changed(thread, change)
		}
		return err
	})
	return broken("update thread", thread, err)
}

// transition is one attempt: it locks the row of the thread and reads, decides, writes and
// commits.
func (s *Store) transition(ctx context.Context, c *pgx.Conn, thread string, need mailbox.Need, decide func(mailbox.State) (mailbox.Change, error)) (mailbox.Change, error) {
	var now seen
	b := &pgx.Batch{}
	b.Queue(`BEGIN`)
	head := lockHead
	if need.Lenient {
		head = salvageHead
	}
	s.ask(b, &now, thread, head, need)
	if err := c.SendBatch(ctx, b).Close(); err != nil {
		return mailbox.Change{}, s.harmless(ctx, c, err)
	}
	now.settle(thread, need)
	dispatches, runs := maps.Clone(now.State.Dispatches), maps.Clone(now.State.Runs) // the state is decide's own
	change, err := decide(now.State)
	if err == nil && change.Head != nil && !change.Drop {
		err = check(thread, now.Head.Messages, change)
	}
	if err != nil || change.Head == nil {
		_, rollback := c.Exec(ctx, `ROLLBACK`)
		_ = rollback // nothing was written; a broken connection is closed when it is given back
		return change, err
	}
	b = &pgx.Batch{}
	s.write(b, thread, &now, change)
	b.Queue(`COMMIT`)
	err = refusal(c.SendBatch(ctx, b).Close())
	if err != nil || change.Drop {
		s.recent.forget(thread)
	} else {
		s.recent.changed(now.xmin, dispatches, runs, change, need.Requests)
	}
	return change, err
}
