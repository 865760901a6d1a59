package pgstore

import (
	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

const runColumns = `id, thread, agent, parent, status, termination, wait, wait_until, output, error, dispatch, session, input,
	created_at, started_at, finished_at, updated_at, data`

func scanRun(row pgx.Row) (r mailbox.Run, err error) {
	err = row.Scan(textTo{&r.ID}, textTo{&r.Thread}, textTo{&r.Agent}, textTo{&r.Parent}, textTo{(*string)(&r.Status)}, textTo{&r.Termination},
		textTo{&r.Wait}, millisTo{&r.WaitUntil}, textTo{&r.Output}, textTo{&r.Error}, textTo{&r.Dispatch}, textTo{&r.Session}, &r.Input,
		millisTo{&r.CreatedAt}, millisTo{&r.StartedAt}, millisTo{&r.FinishedAt}, millisTo{&r.UpdatedAt}, &r.Data)
	for i := range r.Input {
		r.Input[i] = named(r.Input[i])
	}
	return r, err
}

// putRun writes one that may be new: see putDispatch.
const (
	putRun     = putRunHead + ` VALUES (` + putRunRow + `)` + putRunTail
	putRunHead = `INSERT INTO @.run AS old (` + runColumns + `)`
	putRunRow  = `$1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, coalesce($18, ''::bytea)`
	putRunTail = ` ON CONFLICT (id) DO UPDATE SET thread = CASE WHEN old.thread = excluded.thread THEN old.thread END,
	(agent, parent, status, termination, wait, wait_until, output, error, dispatch, session, input, created_at, started_at, finished_at, updated_at, data) =
	(excluded.agent, excluded.parent, excluded.status, excluded.termination, excluded.wait, excluded.wait_until, excluded.output, excluded.error,
	excluded.dispatch, excluded.session, excluded.input, excluded.created_at, excluded.started_at, excluded.finished_at, excluded.updated_at, excluded.data)`
)

// runParameters are those of putRun and updateRun.
const runParameters = 18

// updateRun writes one that was read under the lock of its thread. Data that is NULL stays.
const updateRun = `UPDATE @.run SET
	(agent, parent, status, termination, wait, wait_until, output, error, dispatch, session, input, created_at, started_at, finished_at, updated_at, data) =
	($3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, coalesce($18, data)) WHERE id = $1 AND thread = $2`

// runArgs are the parameters of both.
func runArgs(r *mailbox.Run, data []byte) []any {
	return []any{
		name(r.ID), name(r.Thread), text(r.Agent), text(r.Parent), text(string(r.Status)), text(r.Termination), text(r.Wait), millis(r.WaitUntil),
		text(r.Output), text(r.Error), name(r.Dispatch), text(r.Session), names(r.Input),
		millis(r.CreatedAt), millis(r.StartedAt), millis(r.FinishedAt), millis(r.UpdatedAt), data,
	}
}
