package sqlitestore

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/sqlcore"
)

const (
	selectThread = `SELECT t.id, t.revision, t.remembered,
		coalesce((SELECT a.revision FROM applied a WHERE a.thread = t.id AND a.id = ?), 0) FROM thread t WHERE t.name = ?`
	insertThread = "INSERT INTO thread (name, revision, remembered) VALUES (?, ?, ?)"
	updateThread = "UPDATE thread SET revision = ?, remembered = ? WHERE id = ?"
	putApplied   = "INSERT OR REPLACE INTO applied (thread, slot, id, revision) VALUES (?, ?, ?, ?)"

	selectLog   = "SELECT last FROM log WHERE thread = ? AND log = ?"
	putLog      = "INSERT INTO log (thread, log, last) VALUES (?, ?, ?) ON CONFLICT DO UPDATE SET last = excluded.last"
	insertEntry = "INSERT INTO entry (thread, log, seq, data) VALUES (?, ?, ?, ?)"
	trimEntries = "DELETE FROM entry WHERE thread = ? AND log = ? AND seq < ?"
)

// blob is a name or a key as an argument.
func blob(s string) []byte { return []byte(s) }

// Apply implements store.Store.
func (s *Store) Apply(ctx context.Context, b store.Batch) (revision uint64, err error) {
	if err := b.Validate(); err != nil {
		return 0, fmt.Errorf("sqlitestore: %w", err)
	}
	err = s.writer.write(ctx, b.Size(), change{do: func(ctx context.Context, t *tx) (err error) {
		revision, err = t.apply(ctx, &b)
		return err
	}})
	if err != nil {
		return 0, wrap("thread", b.Thread, err)
	}
	return revision, nil
}

// thread is a thread while a batch is applied.
type thread struct {
	// id is 0 for a thread that does not exist.
	id                             int64
	revision, remembered, repeated int64
	// first and last are the numbers of the entries that the batch appends to each log.
	first, last map[string]uint64
	// empty is set when the thread has no cells and logs.
	empty bool
}

// apply makes the changes of a batch. It checks what it can before it changes anything: the order is that of memstore.
func (t *tx) apply(ctx context.Context, b *store.Batch) (uint64, error) {
	var th thread
	if _, err := t.row(ctx, []any{&th.id, &th.revision, &th.remembered, &th.repeated}, selectThread, blob(b.ID), blob(b.Thread)); err != nil {
		return 0, err
	}
	if th.repeated != 0 && b.ID != "" {
		return uint64(th.repeated), nil //nolint:gosec // revisions are positive
	}
	if b.Base != store.AnyRevision && sqlcore.Number(b.Base) != th.revision {
		return 0, fmt.Errorf("%w: it has revision %d, the batch was made for %d", store.ErrConflict, th.revision, b.Base)
	}
	th.empty = th.id == 0 || b.Drop
	if err := t.checkEntries(ctx, &th, b); err != nil {
		return 0, err
	}
	t.revision++
	t.topics = append(t.topics, b.Notify...)
	if b.Drop && th.id != 0 {
		t.drop(ctx, th.id, b.Thread)
	}
	if b.Drop && len(b.Put)+len(b.Append) == 0 {
		t.run(ctx, "DELETE FROM applied WHERE thread = ?", th.id)
		t.run(ctx, "DELETE FROM thread WHERE id = ?", th.id)
	} else {
		t.putThread(ctx, &th, b)
		t.applyCells(ctx, &th, b)
		t.applyLogs(ctx, &th, b)
	}
	return uint64(t.revision), t.err //nolint:gosec // revisions are positive
}

// checkEntries reads the logs, and refuses entries whose numbers are not those that they would get.
func (t *tx) checkEntries(ctx context.Context, th *thread, b *store.Batch) error {
	th.first, th.last = map[string]uint64{}, map[string]uint64{}
	for i := range b.Append {
		e := &b.Append[i]
		last, known := th.last[e.Log]
		if !known && !th.empty {
			if _, err := t.row(ctx, []any{&last}, selectLog, th.id, blob(e.Log)); err != nil {
				return err
			}
		}
		last++
		if e.Seq != 0 && e.Seq != last {
			return fmt.Errorf("log %.80q: %w: the next entry is %d, not %d", e.Log, store.ErrConflict, last, e.Seq)
		}
		if th.last[e.Log] = last; !known {
			th.first[e.Log] = last
		}
	}
	return nil
}

// drop deletes the cells and logs of a thread.
func (t *tx) drop(ctx context.Context, id int64, name string) {
	t.run(ctx, "DELETE FROM place WHERE thread = ?", blob(name))
	t.run(ctx, "DELETE FROM cell WHERE thread = ?", id)
	t.run(ctx, "DELETE FROM entry WHERE thread = ?", id)
	t.run(ctx, "DELETE FROM log WHERE thread = ?", id)
}

// putThread writes the new revision, and remembers the batch.
func (t *tx) putThread(ctx context.Context, th *thread, b *store.Batch) {
	slot := th.remembered % store.Remembered
	if b.ID != "" {
		th.remembered++
	}
	if th.id != 0 {
		t.run(ctx, updateThread, t.revision, th.remembered, th.id)
	} else {
		th.id = t.insert(ctx, insertThread, blob(b.Thread), t.revision, th.remembered)
	}
	if b.ID != "" {
		t.run(ctx, putApplied, th.id, slot, blob(b.ID), t.revision)
	}
}

func (t *tx) applyLogs(ctx context.Context, th *thread, b *store.Batch) {
	if !th.empty {
		for _, trim := range b.Trim {
			t.run(ctx, trimEntries, th.id, blob(trim.Log), sqlcore.Number(trim.Before))
		}
	}
	for log, last := range th.last {
		t.run(ctx, putLog, th.id, blob(log), sqlcore.Number(last))
	}
	for i := range b.Append {
		e := &b.Append[i]
		t.run(ctx, insertEntry, th.id, blob(e.Log), sqlcore.Number(th.first[e.Log]), sqlcore.Bytes(e.Data))
		th.first[e.Log]++
	}
}
