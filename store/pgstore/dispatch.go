package pgstore

import (
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

// dispatchColumns are followed by the request, or nothing in its place.
const dispatchColumns = `id, thread, run, seq, priority, epoch, dedupe, origin, status, available_at, attempts, max_attempts, last_error, holding,
	token, fence, owner, claim_end, instance, run_status, termination, response, run_error, created_at, updated_at, completed_at, digest`

func scanDispatch(row pgx.Row) (d mailbox.Dispatch, err error) {
	var updated int64
	err = row.Scan(textTo{&d.ID}, textTo{&d.Thread}, textTo{&d.RunID}, &d.Seq, &d.Priority, &d.Epoch, textTo{&d.Dedupe}, textTo{&d.Origin},
		textTo{(*string)(&d.Status)}, millisTo{&d.AvailableAt}, &d.Attempts, &d.MaxAttempts, textTo{&d.LastError}, &d.Holding,
		textTo{&d.Token}, &d.Fence, textTo{&d.Owner}, textTo{(*string)(&d.End)}, textTo{&d.Instance}, textTo{(*string)(&d.RunStatus)},
		textTo{&d.Termination}, textTo{&d.Response}, textTo{&d.RunError}, millisTo{&d.CreatedAt}, &updated, millisTo{&d.CompletedAt},
		textTo{&d.Digest}, &d.Request)
	d.UpdatedAt = time.UnixMilli(updated).UTC() // the zero time too
	return d, err
}

// putDispatch writes one that may be new. The thread of one that is there becomes NULL if it is
// another, which the table refuses.
const (
	putDispatch     = putDispatchHead + ` VALUES (` + putDispatchRow + `)` + putDispatchTail
	putDispatchHead = `INSERT INTO @.dispatch AS old (` + dispatchColumns + `, request)`
	putDispatchRow  = `$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28`
	putDispatchTail = ` ON CONFLICT (id) DO UPDATE SET thread = CASE WHEN old.thread = excluded.thread THEN old.thread END,
	(` + changing + `) = (excluded.run, excluded.seq, excluded.priority, excluded.epoch, excluded.dedupe, excluded.origin, excluded.status,
	excluded.available_at, excluded.attempts, excluded.max_attempts, excluded.last_error, excluded.holding, excluded.token, excluded.fence, excluded.owner,
	excluded.claim_end, excluded.instance, excluded.run_status, excluded.termination, excluded.response, excluded.run_error,
	excluded.created_at, excluded.updated_at, excluded.completed_at, excluded.digest)`
)

// dispatchParameters are those of updateDispatch; putDispatch has one more.
const dispatchParameters = 27

const changing = `run, seq, priority, epoch, dedupe, origin, status, available_at, attempts, max_attempts, last_error, holding,
	token, fence, owner, claim_end, instance, run_status, termination, response, run_error, created_at, updated_at, completed_at, digest`

// updateDispatch writes one that was read under the lock of its thread.
const updateDispatch = `UPDATE @.dispatch SET (` + changing + `) =
	($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27)
	WHERE id = $1 AND thread = $2`

// wholeRequest is the request as putDispatch takes it.
func wholeRequest(d *mailbox.Dispatch) []byte {
	if d.Request == nil {
		return []byte{}
	}
	return d.Request
}

// dispatchArgs are the parameters of both; only putDispatch takes the request.
func dispatchArgs(d *mailbox.Dispatch) []any {
	return []any{
		name(d.ID), name(d.Thread), name(d.RunID), int64(d.Seq), int16(d.Priority), int64(d.Epoch), name(d.Dedupe), text(d.Origin), //nolint:gosec // counters
		text(string(d.Status)), millis(d.AvailableAt), d.Attempts, d.MaxAttempts, text(d.LastError), d.Holding,
		text(d.Token), int64(d.Fence), text(d.Owner), text(string(d.End)), text(d.Instance), text(string(d.RunStatus)), //nolint:gosec // a counter
		text(d.Termination), text(d.Response), text(d.RunError), millis(d.CreatedAt), d.UpdatedAt.UnixMilli(), millis(d.CompletedAt),
		text(d.Digest),
	}
}
