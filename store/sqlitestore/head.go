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
	updateHead = `UPDATE thread SET epoch = ?3, fence = ?4, seq = ?5, queued = ?6, messages = ?7,
		claim_dispatch = ?8, claim_token = ?9, claim_fence = ?10, claim_owner = ?11, claim_until = ?12, claim_stop = ?13,
		latest_run = ?14, latest_agent = ?15, latest_status = ?16, latest_wait = ?17, latest_wait_until = ?18,
		open_run = ?19, open_agent = ?20, open_status = ?21, open_wait = ?22, open_wait_until = ?23,
		commit_id = ?24, interrupt_id = ?25, reserved_until = ?26, due_at = ?27, rank = ?28, updated_at = ?29, ready = ?30
		WHERE id = ?1 AND tenant = ?2`
)

// putHead writes a head. One that was due when it was written is found by rank.
func putHead(c *engine.Conn, h mailbox.Head, known bool) error {
	args := make([]any, 0, 30)
	args = append(args, h.Thread, h.Tenant, h.Epoch, h.Fence, h.Seq, h.Queued, h.Messages)
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
		if n, err := c.Exec(updateHead, args...); err != nil || n > 0 {
			return err
		}
		if _, err := c.Exec("DELETE FROM thread WHERE id = ?", h.Thread); err != nil { // another tenant
			return err
		}
	}
	_, err := c.Exec(insertHead, args...)
	return err
}
