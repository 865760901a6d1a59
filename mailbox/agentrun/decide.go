package agentrun

import (
	"context"
	"slices"

	"github.com/mortise-dev/mortise/agent"
)

// decide hands decisions to the run, and makes them durable before it says that it did. The run has them first: one that has
// come to its end refuses them. They are all taken or none.
func (k *keeper) decide(ctx context.Context, list []agent.Decision, hand func(...agent.Decision) error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	// A run that waits, as far as anybody can know, goes on with a dispatch of its own.
	if r := k.thread.Run; k.closed || r.RunID != k.job.Run.ID || r.Status != agent.StatusRunning {
		return false
	}
	list = slices.DeleteFunc(slices.Clone(list), k.has)
	var added []decided
	for _, d := range list {
		i := slices.IndexFunc(k.thread.Tickets, func(t agent.Ticket) bool { return waitsFor(t, d.Target) })
		if i < 0 {
			return false
		}
		t := k.thread.Tickets[i]
		added = append(added, decided{MessageID: t.MessageID, Rounds: int64(t.Rounds), Decision: putDecision(d)})
	}
	if len(list) == 0 {
		return true
	}
	if err := hand(list...); err != nil {
		return false
	}
	// Also if the commit fails: the run has it, and its next checkpoint says so.
	k.taken = append(k.taken, added...)
	return k.extra(ctx, k.accepted, k.taken) == nil
}

// has says whether a decision came before. The caller holds the lock.
func (k *keeper) has(d agent.Decision) bool {
	return slices.ContainsFunc(k.taken, func(o decided) bool { return o.Decision.ID == d.ID }) ||
		slices.ContainsFunc(k.thread.Tickets, func(t agent.Ticket) bool { return t.Decision != nil && t.Decision.ID == d.ID })
}

func waitsFor(t agent.Ticket, target string) bool {
	return t.Status == agent.TicketOpen && (t.ID == target || t.Call.ID == target)
}

// about says whether a decision is about a ticket as it is.
func (d decided) about(t agent.Ticket) bool {
	return t.Status == agent.TicketOpen && t.MessageID == d.MessageID && int64(t.Rounds) == d.Rounds
}

// pending are the decisions that tickets do not show.
func pending(list []decided, tickets []agent.Ticket) []decided {
	return slices.DeleteFunc(slices.Clone(list), func(d decided) bool { return !slices.ContainsFunc(tickets, d.about) })
}

// resolved are tickets with what was decided about them under way.
func resolved(tickets []agent.Ticket, list []decided) []agent.Ticket {
	tickets = slices.Clone(tickets)
	for _, d := range list {
		i := slices.IndexFunc(tickets, d.about)
		if i < 0 {
			continue
		}
		v := d.Decision.get()
		tickets[i].Status, tickets[i].Decision = agent.TicketResuming, &v
		if v.Action == agent.ActionCancel {
			tickets[i].Status = agent.TicketCancelled
		}
	}
	return tickets
}

// due says whether a run goes on with its tickets as they are: one was decided about, or all of them were.
func due(tickets []agent.Ticket, all bool) bool {
	open := func(t agent.Ticket) bool { return t.Status == agent.TicketOpen }
	left := slices.DeleteFunc(slices.Clone(tickets), open)
	return len(left) > 0 && (!all || len(left) == len(tickets))
}
