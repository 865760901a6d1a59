package sqlitestore

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// letter is a command on its way to another process.
type letter struct {
	id      int64
	to      mailbox.Target
	command mailbox.Command
}

// letters reads the commands after the last one that was served here and that nobody has taken.
func (s *Store) letters(ctx context.Context, last int64) (list []letter, err error) {
	err = s.file.Read(ctx, func(c *engine.Conn) error {
		list = nil
		return c.Query(func(r *engine.Row) {
			list = append(list, letter{
				id: r.Int(), to: mailbox.Target{Thread: r.Text(), Run: r.Text(), Dispatch: r.Text()},
				command: mailbox.Command{Kind: mailbox.CommandKind(r.Text()), ID: r.Text(), Payload: r.Bytes()},
			})
		}, "SELECT id, thread, run, dispatch, kind, command, payload FROM live_command WHERE id > ? AND taken = 0 AND sent_at > ?", last, milli(time.Now().Add(-liveOld)))
	})
	return list, err
}

// send puts a command into the file and waits for the answer: as long as ctx lasts once somebody
// has taken it, and else for a moment.
func (s *Store) send(ctx context.Context, t mailbox.Target, c mailbox.Command) (accepted bool, err error) {
	var id int64
	sent := time.Now()
	err = s.file.Write(ctx, func(conn *engine.Conn) (err error) {
		if _, err := conn.Exec("DELETE FROM live_command WHERE sent_at < ?", milli(sent.Add(-liveOld))); err != nil {
			return err
		}
		id, err = conn.Insert("INSERT INTO live_command (thread, run, dispatch, kind, command, payload, sent_at, taken) VALUES (?, ?, ?, ?, ?, ?, ?, 0)",
			t.Thread, t.Run, t.Dispatch, string(c.Kind), c.ID, c.Payload, sent)
		return err
	})
	if err != nil {
		return false, err
	}
	ticker := time.NewTicker(livePoll / 2)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			_, _ = s.withdraw(context.WithoutCancel(ctx), id, true) // it is old soon
			return false, context.Cause(ctx)
		}
		taken, answered, ok, err := s.look(ctx, id)
		switch {
		case err != nil:
			return false, err
		case answered:
			_, _ = s.withdraw(ctx, id, true) // it is old soon
			return ok, nil
		case !taken && time.Since(sent) > liveNobody:
			if gone, err := s.withdraw(ctx, id, false); gone || err != nil {
				return false, err
			}
		}
	}
}

// look says what became of a command.
func (s *Store) look(ctx context.Context, id int64) (taken, answered, ok bool, err error) {
	err = s.file.Read(ctx, func(c *engine.Conn) error {
		return c.Query(func(r *engine.Row) { taken, answered, ok = r.Bool(), r.Bool(), r.Bool() },
			"SELECT taken, accepted IS NOT NULL, accepted FROM live_command WHERE id = ?", id)
	})
	return taken, answered, ok, err
}

// withdraw drops a command, also one that somebody has taken if it says so, and says whether it did.
func (s *Store) withdraw(ctx context.Context, id int64, also bool) (gone bool, err error) {
	err = s.file.Write(ctx, func(c *engine.Conn) error {
		n, err := c.Exec("DELETE FROM live_command WHERE id = ? AND taken <= ?", id, also)
		gone = n > 0
		return err
	})
	return gone, err
}
