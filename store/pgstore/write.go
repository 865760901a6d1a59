package pgstore

import (
	"bytes"
	"fmt"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/mortise-dev/mortise/mailbox"
)

// write queues the statements of a change. Each refuses by an error what does not fit, so that
// the commit can travel with them.
func (s *Store) write(b *pgx.Batch, thread string, now *seen, c mailbox.Change) {
	if c.Drop {
		for _, table := range []string{"event", "event_last"} {
			s.queue(b, `DELETE FROM @.`+table+` WHERE dispatch IN (SELECT id FROM @.dispatch WHERE thread = $1)`, name(thread))
		}
		for _, table := range []string{"message", "image", "dispatch", "run"} {
			s.queue(b, `DELETE FROM @.`+table+` WHERE thread = $1`, name(thread))
		}
		s.queue(b, `DELETE FROM @.thread WHERE id = $1`, name(thread))
		if c.Head.Fence > 0 {
			s.queue(b, insertHead, headArgs(c.Head)...)
		}
		return
	}
	statement := insertHead
	if now.known {
		statement = updateHead
	}
	s.queue(b, statement+` RETURNING xmin`, headArgs(c.Head)...).QueryRow(func(row pgx.Row) error { return row.Scan(&now.xmin) })
	for _, i := range inOrder(c.Dispatches) {
		s.writeDispatch(b, now, &c.Dispatches[i])
	}
	for i := range c.Runs {
		s.writeRun(b, now, &c.Runs[i])
	}
	s.writeMessages(b, thread, c.Messages)
	if c.Image != nil {
		s.queue(b, `INSERT INTO @.image (thread, data) VALUES ($1, $2) ON CONFLICT (thread) DO UPDATE SET data = excluded.data`, name(thread), c.Image)
	}
}

// inOrder puts what gives a claim or a key up before what takes it.
func inOrder(list []mailbox.Dispatch) []int {
	out := make([]int, len(list))
	for i := range out {
		out[i] = i
	}
	class := func(i int) int {
		switch list[i].Status {
		case mailbox.Claimed:
			return 2
		case mailbox.Queued:
			return 1
		default:
			return 0
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return class(a) - class(b) })
	return out
}

func (s *Store) writeDispatch(b *pgx.Batch, now *seen, d *mailbox.Dispatch) {
	args := dispatchArgs(d)
	if now.dispatches[d.ID] {
		s.queue(b, updateDispatch, args...)
		return
	}
	s.queue(b, putDispatch, append(args, wholeRequest(d))...)
}

// writeRun leaves data alone that is as it was: it may be large.
func (s *Store) writeRun(b *pgx.Batch, now *seen, r *mailbox.Run) {
	if _, known := now.data[r.ID]; !known {
		s.queue(b, putRun, runArgs(r, r.Data)...)
		return
	}
	s.queue(b, updateRun, runArgs(r, changedData(now, r))...)
}

// changedData is the data of a run, nil if it is as it was.
func changedData(now *seen, r *mailbox.Run) []byte {
	if bytes.Equal(now.data[r.ID], r.Data) {
		return nil
	}
	return append([]byte{}, r.Data...)
}

// putMessages writes messages at their places. One that is there keeps its run and its time;
// its id becomes NULL if it is another, which the table refuses.
const (
	putMessages     = putMessagesHead + putMessagesTail
	putMessagesHead = `INSERT INTO @.message AS old (thread, seq, id, run, data, at)
	SELECT $1, m.seq, m.id, m.run, m.data, m.at FROM unnest($2::bigint[], $3::text[], $4::text[], $5::bytea[], $6::bigint[]) AS m(seq, id, run, data, at)`
	putMessagesTail = ` ON CONFLICT (thread, seq) DO UPDATE SET data = excluded.data, id = CASE WHEN old.id = excluded.id THEN old.id END`
)

func (s *Store) writeMessages(b *pgx.Batch, thread string, list []mailbox.Message) {
	if len(list) > 0 {
		s.queue(b, putMessages, messageArgs(thread, list)...)
	}
}

func messageArgs(thread string, list []mailbox.Message) []any {
	last := map[int]int{} // a place that is written twice has what came last
	for i := range list {
		last[list[i].Seq] = i
	}
	n := len(last)
	seqs, ids, runs := make([]int64, 0, n), make([]string, 0, n), make([]string, 0, n)
	data, at := make([][]byte, 0, n), make([]pgtype.Int8, 0, n)
	for i, m := range list {
		if last[m.Seq] != i {
			continue
		}
		seqs, ids, runs = append(seqs, int64(m.Seq)), append(ids, name(m.ID)), append(runs, text(m.Run))
		data, at = append(data, append([]byte{}, m.Data...)), append(at, millis(m.At))
	}
	return []any{name(thread), seqs, ids, runs, data, at}
}

// check refuses what no statement would, given the length of the log: parts of another thread, and a log with gaps.
func check(thread string, length int, c mailbox.Change) error {
	if c.Head.Thread != thread {
		return fmt.Errorf("head of thread %.80q: %w", c.Head.Thread, mailbox.ErrInvalid)
	}
	for i := range c.Dispatches {
		if c.Dispatches[i].Thread != thread {
			return fmt.Errorf("dispatch %.80q: %w in another thread", c.Dispatches[i].ID, mailbox.ErrExists)
		}
	}
	for i := range c.Runs {
		if c.Runs[i].Thread != thread {
			return fmt.Errorf("run %.80q: %w in another thread", c.Runs[i].ID, mailbox.ErrExists)
		}
	}
	end := length
	for _, m := range c.Messages {
		if m.Seq == end+1 && m.ID != "" {
			end++
		} else if m.Seq < 1 || m.Seq > length {
			return fmt.Errorf("message %.80q at %d: %w: the log has %d", m.ID, m.Seq, mailbox.ErrConflict, end)
		}
	}
	if c.Head.Messages != end {
		return fmt.Errorf("%w: the log would have %d messages, the head says %d", mailbox.ErrConflict, end, c.Head.Messages)
	}
	return nil
}
