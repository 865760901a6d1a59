package sqlitestore

import (
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

const dispatchColumns = `id, thread, run, seq, priority, epoch, dedupe, origin, status,
	available_at, attempts, max_attempts, last_error, holding, token, fence, owner, claim_end,
	instance, run_status, termination, response, run_error, created_at, updated_at, completed_at, digest`

func readDispatch(r *engine.Row) mailbox.Dispatch {
	return mailbox.Dispatch{
		ID: r.Text(), Thread: r.Text(), RunID: r.Text(), Seq: r.Uint(), Priority: uint8(r.Int()), //nolint:gosec // as it was written
		Epoch: r.Uint(), Dedupe: r.Text(), Origin: r.Text(), Status: mailbox.Status(r.Text()),
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
	updateDispatch = `UPDATE dispatch SET run = ?3, epoch = ?6, origin = ?8, status = ?9,
		available_at = ?10, attempts = ?11, max_attempts = ?12, last_error = ?13, holding = ?14, token = ?15, fence = ?16, owner = ?17, claim_end = ?18,
		instance = ?19, run_status = ?20, termination = ?21, response = ?22, run_error = ?23, created_at = ?24, updated_at = ?25, completed_at = ?26, digest = ?27
		WHERE id = ?1 AND thread = ?2 AND seq = ?4 AND priority = ?5 AND dedupe = ?7`
)

// putDispatch writes a dispatch; known says that it is there.
func putDispatch(c *engine.Conn, d *mailbox.Dispatch, known bool) error {
	args := []any{
		d.ID, d.Thread, d.RunID, d.Seq, d.Priority, d.Epoch, d.Dedupe, d.Origin, string(d.Status),
		d.AvailableAt, d.Attempts, d.MaxAttempts, d.LastError, d.Holding, d.Token, d.Fence, d.Owner, string(d.End),
		d.Instance, string(d.RunStatus), d.Termination, d.Response, d.RunError, d.CreatedAt, milli(d.UpdatedAt), d.CompletedAt, d.Digest,
	}
	if known {
		if n, err := c.Exec(updateDispatch, args...); err != nil || n > 0 {
			return err
		}
		if _, err := c.Exec("DELETE FROM dispatch WHERE id = ?", d.ID); err != nil { // it is listed elsewhere
			return err
		}
	}
	if _, err := c.Exec(insertDispatch, args...); err != nil || known || len(d.Request) == 0 {
		return err
	}
	_, err := c.Exec("INSERT INTO request VALUES (?, ?)", d.ID, d.Request)
	return err
}
