package pgstore

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

// seen is what a transition has read: what decide may know, and what the store keeps to
// tell what has changed.
type seen struct {
	mailbox.State

	// known says that the thread is there, and dispatches and runs which of them are; data
	// is that of the runs, which decide does not get.
	known      bool
	dispatches map[string]bool
	data       map[string][]byte
	// xmin is the version of the row of the thread, once it is written.
	xmin uint32
}

const (
	selectHead = `SELECT ` + headColumns + ` FROM @.thread WHERE id = $1`
	lockHead   = selectHead + ` FOR UPDATE`
)

// ask queues the statements that read what a need names.
func (s *Store) ask(b *pgx.Batch, out *seen, thread, head string, need mailbox.Need) {
	out.State = mailbox.State{Head: mailbox.Head{Thread: thread}, Dispatches: map[string]mailbox.Dispatch{}, Runs: map[string]mailbox.Run{}}
	out.known, out.dispatches, out.data = false, map[string]bool{}, map[string][]byte{}
	s.queue(b, head, name(thread)).QueryRow(func(row pgx.Row) error {
		h, err := scanHead(row)
		if errors.Is(err, pgx.ErrNoRows) {
			return nil
		}
		out.Head, out.known = h, true
		return err
	})
	if some(need) {
		q := dispatchQuery(thread, need)
		s.queue(b, q.sql.String(), q.args...).Query(out.scanDispatches)
	}
	if len(need.Runs) > 0 || need.RunsOf {
		q := runQuery(thread, need)
		s.queue(b, q.sql.String(), q.args...).Query(out.scanRuns)
	}
	if need.Next {
		q := laterQuery(thread, need)
		s.queue(b, q.sql.String(), q.args...).QueryRow(func(row pgx.Row) error { return row.Scan(millisTo{&out.Later}) })
	}
	if need.Image {
		s.queue(b, `SELECT data FROM @.image WHERE thread = $1`, name(thread)).Query(func(rows pgx.Rows) error {
			defer rows.Close()
			for rows.Next() {
				if err := rows.Scan(&out.Image); err != nil {
					return err
				}
			}
			return rows.Err()
		})
	}
}

func (s *Store) queue(b *pgx.Batch, sql string, args ...any) *pgx.QueuedQuery {
	return b.Queue(s.sql(sql), args...)
}

func (n *seen) scanDispatches(rows pgx.Rows) error {
	defer rows.Close()
	for rows.Next() {
		d, err := scanDispatch(rows)
		if err != nil {
			return err
		}
		n.State.Dispatches[d.ID], n.dispatches[d.ID] = d, true
	}
	return rows.Err()
}

func (n *seen) scanRuns(rows pgx.Rows) error {
	defer rows.Close()
	for rows.Next() {
		r, err := scanRun(rows)
		if err != nil {
			return err
		}
		n.data[r.ID] = r.Data
		r.Data = bytes.Clone(r.Data)
		n.State.Runs[r.ID] = r
	}
	return rows.Err()
}

// settle fills in what follows from what was read.
func (n *seen) settle(thread string, need mailbox.Need) {
	if !n.known {
		// What came was of a thread that was dropped a moment ago.
		n.State = mailbox.State{Head: mailbox.Head{Thread: thread}, Dispatches: map[string]mailbox.Dispatch{}, Runs: map[string]mailbox.Run{}}
		clear(n.dispatches)
		clear(n.data)
		return
	}
	for id, d := range n.State.Dispatches {
		if need.Dedupe != "" && d.Dedupe == need.Dedupe && !d.Status.Terminal() {
			n.Duplicate = id
		}
		if d.Status != mailbox.Queued {
			continue
		}
		if need.Queued {
			n.Queued = append(n.Queued, id)
		}
		if need.Next && !d.AvailableAt.After(need.Now) {
			n.Next = n.first(n.Next, id)
		}
		if need.Next && d.Holding {
			n.Holder = n.first(n.Holder, id)
		}
	}
	slices.SortFunc(n.Queued, n.compare)
}

// first is the earlier one of two queued dispatches.
func (n *seen) first(a, b string) string {
	if a == "" || n.compare(b, a) < 0 {
		return b
	}
	return a
}

func (n *seen) compare(a, b string) int {
	x, y := n.State.Dispatches[a], n.State.Dispatches[b]
	return cmp.Or(cmp.Compare(x.Priority, y.Priority), cmp.Compare(x.Seq, y.Seq))
}

// Load implements mailbox.Store.
func (s *Store) Load(ctx context.Context, thread string, need mailbox.Need) (mailbox.State, error) {
	var out seen
	err := s.read(ctx, func(c *pgx.Conn) error {
		b := &pgx.Batch{}
		b.Queue(`BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY`)
		s.ask(b, &out, thread, selectHead, need)
		b.Queue(`COMMIT`)
		return c.SendBatch(ctx, b).Close()
	})
	if err != nil {
		return mailbox.State{}, broken("load thread", thread, err)
	}
	out.settle(thread, need)
	return out.State, nil
}
