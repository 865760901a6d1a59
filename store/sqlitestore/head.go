package sqlitestore

import (
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

const headColumns = `id, tenant, epoch, fence, seq, queued, messages,
	claim_dispatch, claim_token, claim_fence, claim_owner, claim_until, claim_stop,
	latest_run, latest_agent, latest_status, latest_wait, latest_wait_until,
	open_run, open_agent, open_status, open_wait, open_wait_until,
	commit_id, interrupt_id, reserved_until, due_at, rank, updated_at`

func readHead(r *engine.Row) mailbox.Head {
	h := mailbox.Head{
		Thread: r.Text(), Tenant: r.Text(), Epoch: r.Uint(), Fence: r.Uint(), Seq: r.Uint(), Queued: int(r.Int()), Messages: int(r.Int()),
	}
	c := mailbox.Claim{Dispatch: r.Text(), Token: r.Text(), Fence: r.Uint(), Owner: r.Text(), Until: r.Time(), Stop: r.Text()}
	if c != (mailbox.Claim{}) {
		h.Claim = &c
	}
	h.Latest, h.Open = readRef(r), readRef(r)
	h.Commit, h.Interrupt, h.ReservedUntil = r.Text(), r.Text(), r.Time()
	h.DueAt, h.Rank, h.UpdatedAt = r.Time(), r.Int(), r.Time()
	return h
}

func readRef(r *engine.Row) mailbox.RunRef {
	return mailbox.RunRef{ID: r.Text(), Agent: r.Text(), Status: mailbox.RunStatus(r.Text()), Wait: r.Text(), WaitUntil: r.Time()}
}

// The tenant, which has an index of its own, is not written again when it stays.
const (
	insertHead = `INSERT INTO thread (` + headColumns + `, ready)
		VALUES (?, ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?,  ?, ?, ?, ?, ?, ?, ?)`
	updateHead = `UPDATE thread SET epoch = ?, fence = ?, seq = ?, queued = ?, messages = ?,
		claim_dispatch = ?, claim_token = ?, claim_fence = ?, claim_owner = ?, claim_until = ?, claim_stop = ?,
		latest_run = ?, latest_agent = ?, latest_status = ?, latest_wait = ?, latest_wait_until = ?,
		open_run = ?, open_agent = ?, open_status = ?, open_wait = ?, open_wait_until = ?,
		commit_id = ?, interrupt_id = ?, reserved_until = ?, due_at = ?, rank = ?, updated_at = ?, ready = ?
		WHERE id = ? AND tenant = ?`
)

// putHead writes a head. One that was due when it was written is found by rank.
func putHead(c *engine.Conn, h mailbox.Head, known bool) error {
	keys := []any{h.Thread, h.Tenant}
	args := make([]any, 0, 30)
	args = append(args, h.Epoch, h.Fence, h.Seq, h.Queued, h.Messages)
	if k := h.Claim; k != nil {
		args = append(args, k.Dispatch, k.Token, k.Fence, k.Owner, k.Until, k.Stop)
	} else {
		args = append(args, nil, nil, nil, nil, nil, nil)
	}
	for _, ref := range []mailbox.RunRef{h.Latest, h.Open} {
		args = append(args, ref.ID, ref.Agent, string(ref.Status), ref.Wait, ref.WaitUntil)
	}
	ready := !h.DueAt.IsZero() && !h.DueAt.After(h.UpdatedAt)
	args = append(args, h.Commit, h.Interrupt, h.ReservedUntil, h.DueAt, h.Rank, h.UpdatedAt, ready)
	if known {
		if n, err := c.Exec(updateHead, append(args, keys...)...); err != nil || n > 0 {
			return err
		}
		if _, err := c.Exec("DELETE FROM thread WHERE id = ?", h.Thread); err != nil { // another tenant
			return err
		}
	}
	_, err := c.Exec(insertHead, append(keys, args...)...)
	return err
}
