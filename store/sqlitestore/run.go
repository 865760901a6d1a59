package sqlitestore

import (
	"encoding/json"
	"fmt"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

const runColumns = `id, thread, agent, parent, status, termination, wait, wait_until, output, error,
	dispatch, session, input, created_at, started_at, finished_at, updated_at`

// readRun reads a run without its data, and its input as it is kept.
func readRun(r *engine.Row) (run mailbox.Run, input string) {
	run = mailbox.Run{
		ID: r.Text(), Thread: r.Text(), Agent: r.Text(), Parent: r.Text(), Status: mailbox.RunStatus(r.Text()), Termination: r.Text(),
		Wait: r.Text(), WaitUntil: r.Time(), Output: r.Text(), Error: r.Text(), Dispatch: r.Text(), Session: r.Text(),
	}
	input = r.Text()
	run.CreatedAt, run.StartedAt, run.FinishedAt, run.UpdatedAt = r.Time(), r.Time(), r.Time(), r.Time()
	return run, input
}

func decodeInput(text string) (ids []string, err error) {
	if text == "" {
		return nil, nil
	}
	if err := json.Unmarshal([]byte(text), &ids); err != nil {
		return nil, fmt.Errorf("input of a run: %w", err)
	}
	return ids, nil
}

func encodeInput(ids []string) (string, error) {
	if len(ids) == 0 {
		return "", nil
	}
	text, err := json.Marshal(ids)
	if err != nil {
		return "", fmt.Errorf("input of a run: %w", err)
	}
	return string(text), nil
}

const (
	insertRun = `INSERT INTO run (` + runColumns + `) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?)`
	updateRun = `UPDATE run SET agent = ?, parent = ?, status = ?, termination = ?, wait = ?, wait_until = ?, output = ?, error = ?,
		dispatch = ?, session = ?, input = ?, created_at = ?, started_at = ?, finished_at = ?, updated_at = ? WHERE id = ? AND thread = ?`
	putData = `INSERT INTO run_data VALUES (?, ?) ON CONFLICT (run) DO UPDATE SET data = excluded.data`
)

// putRun writes a run. Its data is written only if it is not what it was.
func putRun(c *engine.Conn, r *mailbox.Run, known bool, data digest) error {
	input, err := encodeInput(r.Input)
	if err != nil {
		return err
	}
	keys := []any{r.ID, r.Thread}
	rest := []any{
		r.Agent, r.Parent, string(r.Status), r.Termination, r.Wait, r.WaitUntil, r.Output, r.Error,
		r.Dispatch, r.Session, input, r.CreatedAt, r.StartedAt, r.FinishedAt, r.UpdatedAt,
	}
	if known {
		_, err = c.Exec(updateRun, append(rest, keys...)...)
	} else {
		_, err = c.Exec(insertRun, append(keys, rest...)...)
	}
	if err != nil {
		return err
	}
	switch {
	case data == digestOf(r.Data):
		return nil
	case len(r.Data) == 0:
		_, err = c.Exec("DELETE FROM run_data WHERE run = ?", r.ID)
	default:
		_, err = c.Exec(putData, r.ID, r.Data)
	}
	return err
}
