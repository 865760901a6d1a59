package pgstore

import (
	"github.com/jackc/pgx/v5"

	"github.com/mortise-dev/mortise/mailbox"
)

const headColumns = `id, tenant, epoch, fence, seq, queued, messages,
	claim_dispatch IS NOT NULL, claim_dispatch, claim_token, claim_fence, claim_owner, claim_until, claim_stop,
	latest_run, latest_agent, latest_status, latest_wait, latest_wait_until, open_run, open_agent, open_status, open_wait, open_wait_until,
	commit_id, interrupt_id, reserved_until, due_at, rank, updated_at`

func scanHead(row pgx.Row) (h mailbox.Head, err error) {
	var c mailbox.Claim
	var claimed bool
	l, o := &h.Latest, &h.Open
	err = row.Scan(textTo{&h.Thread}, textTo{&h.Tenant}, &h.Epoch, &h.Fence, &h.Seq, &h.Queued, &h.Messages,
		&claimed, textTo{&c.Dispatch}, textTo{&c.Token}, &c.Fence, textTo{&c.Owner}, millisTo{&c.Until}, textTo{&c.Stop},
		textTo{&l.ID}, textTo{&l.Agent}, textTo{(*string)(&l.Status)}, textTo{&l.Wait}, millisTo{&l.WaitUntil},
		textTo{&o.ID}, textTo{&o.Agent}, textTo{(*string)(&o.Status)}, textTo{&o.Wait}, millisTo{&o.WaitUntil},
		textTo{&h.Commit}, textTo{&h.Interrupt}, millisTo{&h.ReservedUntil}, millisTo{&h.DueAt}, &h.Rank, millisTo{&h.UpdatedAt})
	if claimed {
		h.Claim = &c
	}
	return h, err
}

// salvageHead locks a head and reads what can be read of it: counters that are none are 0, and the fence and the time are not
// before those of the thread.
const salvageHead = `SELECT id, tenant, greatest(epoch, 0),
	greatest(fence, claim_fence, (SELECT max(d.fence) FROM @.dispatch d WHERE d.thread = t.id), 0), greatest(seq, 0), greatest(queued, 0), greatest(messages, 0),
	claim_dispatch IS NOT NULL OR claim_token <> '' OR claim_fence <> 0 OR claim_until IS NOT NULL,
	claim_dispatch, claim_token, greatest(claim_fence, 0), claim_owner, claim_until, claim_stop,
	latest_run, latest_agent, latest_status, latest_wait, latest_wait_until, open_run, open_agent, open_status, open_wait, open_wait_until,
	commit_id, interrupt_id, reserved_until, due_at, rank, coalesce(updated_at, (SELECT max(d.updated_at) FROM @.dispatch d WHERE d.thread = t.id))
	FROM @.thread t WHERE id = $1 FOR UPDATE OF t`

const insertHead = `INSERT INTO @.thread (id, tenant, epoch, fence, seq, queued, messages,
	claim_dispatch, claim_token, claim_fence, claim_owner, claim_until, claim_stop,
	latest_run, latest_agent, latest_status, latest_wait, latest_wait_until, open_run, open_agent, open_status, open_wait, open_wait_until,
	commit_id, interrupt_id, reserved_until, due_at, rank, updated_at, ready)
	VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26, $27, $28, $29, $30)`

const updateHead = `UPDATE @.thread SET tenant = $2, epoch = $3, fence = $4, seq = $5, queued = $6, messages = $7,
	claim_dispatch = $8, claim_token = $9, claim_fence = $10, claim_owner = $11, claim_until = $12, claim_stop = $13,
	latest_run = $14, latest_agent = $15, latest_status = $16, latest_wait = $17, latest_wait_until = $18,
	open_run = $19, open_agent = $20, open_status = $21, open_wait = $22, open_wait_until = $23,
	commit_id = $24, interrupt_id = $25, reserved_until = $26, due_at = $27, rank = $28, updated_at = $29, ready = $30 WHERE id = $1`

// headParameters are those of insertHead and updateHead.
const headParameters = 30

// headArgs are the parameters of both.
func headArgs(h *mailbox.Head) []any {
	var c mailbox.Claim
	var claimed *string
	if h.Claim != nil {
		c = *h.Claim
		id := name(c.Dispatch)
		claimed = &id
	}
	ready := !h.DueAt.IsZero() && !h.DueAt.After(h.UpdatedAt)
	return []any{
		name(h.Thread), name(h.Tenant), int64(h.Epoch), int64(h.Fence), int64(h.Seq), h.Queued, h.Messages, //nolint:gosec // counters
		claimed, text(c.Token), int64(c.Fence), text(c.Owner), millis(c.Until), text(c.Stop), //nolint:gosec // a counter
		name(h.Latest.ID), text(h.Latest.Agent), text(string(h.Latest.Status)), text(h.Latest.Wait), millis(h.Latest.WaitUntil),
		name(h.Open.ID), text(h.Open.Agent), text(string(h.Open.Status)), text(h.Open.Wait), millis(h.Open.WaitUntil),
		text(h.Commit), text(h.Interrupt), millis(h.ReservedUntil), millis(h.DueAt), h.Rank, millis(h.UpdatedAt), ready,
	}
}
