package sqlitestore

import (
	"slices"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

const dispatchColumns = `id, thread, seq, priority, dedupe, run, epoch, origin, status,
	available_at, attempts, max_attempts, last_error, holding, token, fence, owner, claim_end,
	instance, run_status, termination, response, run_error, created_at, updated_at, completed_at, digest`

func readDispatch(r *engine.Row) mailbox.Dispatch {
	return mailbox.Dispatch{
		ID: r.Text(), Thread: r.Text(), Seq: r.Uint(), Priority: uint8(r.Int()), Dedupe: r.Text(), //nolint:gosec // as it was written
		RunID: r.Text(), Epoch: r.Uint(), Origin: r.Text(), Status: mailbox.Status(r.Text()),
		AvailableAt: r.Time(), Attempts: int(r.Int()), MaxAttempts: int(r.Int()), LastError: r.Text(), Holding: r.Bool(),
		Token: r.Text(), Fence: r.Uint(), Owner: r.Text(), End: mailbox.ClaimEnd(r.Text()),
		Instance: r.Text(), RunStatus: mailbox.RunStatus(r.Text()), Termination: r.Text(), Response: r.Text(), RunError: r.Text(),
		CreatedAt: r.Time(), UpdatedAt: r.Time(), CompletedAt: r.Time(), Digest: r.Text(),
	}
}

// What says where a dispatch is listed is not written again when it stays, since each index that
// has it would be.
const (
	insertDispatch = `INSERT INTO dispatch (` + dispatchColumns + `)
		VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?, ?, ?)`
	updateDispatch = `UPDATE dispatch SET run = ?, epoch = ?, origin = ?, status = ?,
		available_at = ?, attempts = ?, max_attempts = ?, last_error = ?, holding = ?, token = ?, fence = ?, owner = ?, claim_end = ?,
		instance = ?, run_status = ?, termination = ?, response = ?, run_error = ?, created_at = ?, updated_at = ?, completed_at = ?, digest = ?
		WHERE id = ? AND thread = ? AND seq = ? AND priority = ? AND dedupe = ?`
)

// putDispatch writes a dispatch; known says that it is there.
func putDispatch(c *engine.Conn, d *mailbox.Dispatch, known bool) error {
	keys := []any{d.ID, d.Thread, d.Seq, d.Priority, d.Dedupe}
	rest := []any{
		d.RunID, d.Epoch, d.Origin, string(d.Status),
		d.AvailableAt, d.Attempts, d.MaxAttempts, d.LastError, d.Holding, d.Token, d.Fence, d.Owner, string(d.End),
		d.Instance, string(d.RunStatus), d.Termination, d.Response, d.RunError, d.CreatedAt, milli(d.UpdatedAt), d.CompletedAt, d.Digest,
	}
	if known {
		if n, err := c.Exec(updateDispatch, slices.Concat(rest, keys)...); err != nil || n > 0 {
			return err
		}
		if _, err := c.Exec("DELETE FROM dispatch WHERE id = ?", d.ID); err != nil { // it is listed elsewhere
			return err
		}
	}
	if _, err := c.Exec(insertDispatch, append(keys, rest...)...); err != nil || known || len(d.Request) == 0 {
		return err
	}
	_, err := c.Exec("INSERT INTO request VALUES (?, ?)", d.ID, d.Request)
	return err
}
