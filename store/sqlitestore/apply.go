package sqlitestore

import (
	"fmt"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// apply writes a change. An error means that the transaction has to be undone.
func (v *view) apply(change mailbox.Change) error {
	if change.Drop {
		v.cache.clear()
		return v.drop(*change.Head)
	}
	if err := v.check(change); err != nil {
		return err
	}
	var sum tally
	for i := range change.Dispatches {
		d := &change.Dispatches[i]
		old := v.dispatches[d.ID]
		if err := putDispatch(v.c, d, old.thread != ""); err != nil {
			return taken("dispatch", d.ID, err)
		}
		sum.add(old.status, -1)
		sum.add(d.Status, 1)
		v.dispatches[d.ID] = place{thread: v.id, status: d.Status}
	}
	for i := range change.Runs {
		r := &change.Runs[i]
		old := v.runs[r.ID]
		if err := putRun(v.c, r, old.thread != "", old.data); err != nil {
			return taken("run", r.ID, err)
		}
		v.runs[r.ID] = place{thread: v.id, data: digestOf(r.Data)}
	}
	if err := v.putLog(change); err != nil {
		return err
	}
	if change.Image != nil {
		if err := v.putImage(change.Image); err != nil {
			return err
		}
	}
	if err := sum.write(v.c); err != nil {
		return err
	}
	if err := putHead(v.c, *change.Head, v.known); err != nil {
		return err
	}
	v.cache.put(change)
	return nil
}

// taken says that a key is taken, if that is it.
func taken(what, id string, err error) error {
	if engine.IsConstraint(err) {
		return fmt.Errorf("%s %.80q: a key of it: %w: %w", what, id, mailbox.ErrExists, err)
	}
	return err
}

// check looks for what the change writes, and refuses what is another thread's. Nothing has been
// written then. What a thread brings that is not there yet, the keys of the tables compare.
func (v *view) check(change mailbox.Change) error {
	for i := range change.Dispatches {
		d := &change.Dispatches[i]
		if err := v.loadDispatch(d.ID, false, map[string]mailbox.Dispatch{}); err != nil {
			return err
		}
		if at := v.dispatches[d.ID].thread; d.Thread != v.id || at != "" && at != v.id {
			return fmt.Errorf("dispatch %.80q: %w in another thread", d.ID, mailbox.ErrExists)
		}
	}
	for i := range change.Runs {
		r := &change.Runs[i]
		if err := v.loadRun(r.ID, map[string]mailbox.Run{}); err != nil {
			return err
		}
		if at := v.runs[r.ID].thread; r.Thread != v.id || at != "" && at != v.id {
			return fmt.Errorf("run %.80q: %w in another thread", r.ID, mailbox.ErrExists)
		}
	}
	return v.checkLog(change)
}

// checkLog refuses places that do not follow the log. Ids are for the tables to compare.
func (v *view) checkLog(change mailbox.Change) error {
	length := v.head.Messages
	for i := range change.Messages {
		m := &change.Messages[i]
		switch {
		case m.ID == "" || m.Seq < 1 || m.Seq > length+1:
			return fmt.Errorf("message %.80q at %d: %w: the log has %d", m.ID, m.Seq, mailbox.ErrConflict, length)
		case m.Seq == length+1:
			length++
		case m.Seq > v.head.Messages:
			return fmt.Errorf("message %.80q at %d: %w: it comes twice", m.ID, m.Seq, mailbox.ErrConflict)
		}
	}
	if change.Head.Messages != length {
		return fmt.Errorf("%w: the log would have %d messages, the head says %d", mailbox.ErrConflict, length, change.Head.Messages)
	}
	return nil
}

func (v *view) putLog(change mailbox.Change) error {
	for i := range change.Messages {
		m := &change.Messages[i]
		var n int64
		var err error
		if m.Seq <= v.head.Messages {
			n, err = v.c.Exec("UPDATE message SET data = ? WHERE thread = ? AND seq = ? AND id = ?", m.Data, v.id, m.Seq, m.ID)
		} else {
			n, err = v.c.Exec("INSERT INTO message (thread, seq, id, run, data, at) VALUES (?, ?, ?, ?, ?, ?)", v.id, m.Seq, m.ID, m.Run, m.Data, m.At)
		}
		if engine.IsConstraint(err) || err == nil && n == 0 {
			return fmt.Errorf("message %.80q at %d: %w: the id is another's", m.ID, m.Seq, mailbox.ErrConflict)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (v *view) putImage(data []byte) error {
	if len(data) == 0 {
		_, err := v.c.Exec("DELETE FROM image WHERE thread = ?", v.id)
		return err
	}
	_, err := v.c.Exec("INSERT INTO image VALUES (?, ?) ON CONFLICT (thread) DO UPDATE SET data = excluded.data", v.id, data)
	return err
}

// drop forgets the thread. Its head stays if it has a fence.
func (v *view) drop(left mailbox.Head) error {
	var sum tally
	err := v.c.Query(func(r *engine.Row) { sum.add(mailbox.Status(r.Text()), -int(r.Int())) },
		"SELECT status, count(*) FROM dispatch WHERE thread = ? GROUP BY status", v.id)
	if err != nil {
		return err
	}
	for _, text := range []string{
		"DELETE FROM event WHERE dispatch IN (SELECT id FROM dispatch WHERE thread = ?)",
		"DELETE FROM request WHERE dispatch IN (SELECT id FROM dispatch WHERE thread = ?)",
		"DELETE FROM dispatch WHERE thread = ?",
		"DELETE FROM run_data WHERE run IN (SELECT id FROM run WHERE thread = ?)",
		"DELETE FROM run WHERE thread = ?",
		"DELETE FROM message WHERE thread = ?",
		"DELETE FROM image WHERE thread = ?",
		"DELETE FROM thread WHERE id = ?",
	} {
		if _, err := v.c.Exec(text, v.id); err != nil {
			return err
		}
	}
	if left.Fence > 0 {
		if err := putHead(v.c, left, false); err != nil {
			return err
		}
	}
	return sum.write(v.c)
}
