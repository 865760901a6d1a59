package agentrun

import (
	"context"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
)

// decide sends decisions to the run, and makes them durable before it returns. The run gets them first: one that has
// come to its end refuses them. Either all are accepted or none.
func (k *keeper) decide(ctx context.Context, list []decision, hand func(...agent.Decision) error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	// A run that waits by its latest checkpoint continues with a dispatch of its own.
	if r := k.thread.Run; k.closed || r.RunID != k.job.Run.ID || r.Status != agent.StatusRunning {
		return false
	}
	list = slices.DeleteFunc(slices.Clone(list), k.has)
	var added []decided
	for _, d := range list {
		i := d.find(k.thread.Tickets)
		if i < 0 {
			return false
		}
		t := k.thread.Tickets[i]
		added = append(added, decided{MessageID: t.MessageID, Rounds: int64(t.Rounds), Decision: d})
	}
	if len(list) == 0 {
		return true
	}
	if err := hand(plain(list)...); err != nil {
		return false
	}
	// Also if the commit fails: the run has it, and its next checkpoint has it.
	k.taken = append(k.taken, added...)
	return k.extra(ctx, k.accepted, k.taken) == nil
}

// has reports whether the run got a decision before. The caller holds the lock.
func (k *keeper) has(d decision) bool {
	return slices.ContainsFunc(k.taken, func(o decided) bool { return o.Decision.ID == d.ID }) ||
		slices.ContainsFunc(k.thread.Tickets, func(t agent.Ticket) bool { return t.Decision != nil && t.Decision.ID == d.ID })
}

// admit splits decisions about a run: those that it waits for, each about another call, and the targets of the rest. A run that is not
// the latest of its thread, or that has ended, waits for nothing.
func admit(c agent.Checkpoint, run string, list []decision) (taken []decision, refused []string) {
	tickets := slices.Clone(c.Tickets)
	if c.Run.RunID != run || c.Run.Status == agent.StatusDone {
		tickets = nil
	}
	for _, d := range list {
		i := d.find(tickets)
		if i < 0 {
			refused = append(refused, d.Target)
			continue
		}
		tickets[i].Status = agent.TicketResuming
		taken = append(taken, d)
	}
	return taken, refused
}

// plain returns decisions in the form of the agent.
func plain(list []decision) (out []agent.Decision) {
	for _, d := range list {
		out = append(out, d.get())
	}
	return out
}

// refusal names the decisions that no call waits for.
func refusal(targets []string) error {
	return fmt.Errorf("agentrun: %w: no call or suspension %.120q waits for such a decision: it was decided before, or never asked", mailbox.ErrRefused, targets)
}

// find is the ticket that a decision is about, if that waits for it, and else -1.
func (d decision) find(tickets []agent.Ticket) int {
	i := slices.IndexFunc(tickets, func(t agent.Ticket) bool { return t.Status == agent.TicketOpen && t.ID == d.Target })
	if i < 0 {
		i = slices.IndexFunc(tickets, func(t agent.Ticket) bool { return t.Status == agent.TicketOpen && t.Call.ID == d.Target })
	}
	known := d.Action == string(agent.ActionResume) || d.Action == string(agent.ActionCancel)
	if i < 0 || !known || d.About != nil && *d.About != placeOf(tickets[i]) {
		return -1
	}
	return i
}

func placeOf(t agent.Ticket) place {
	return place{MessageID: t.MessageID, Rounds: int64(t.Rounds)}
}

// Judge implements mailbox.Judge. A decision is bound to the question that its call has asked latest; one that waits comes first.
func (r *Runtime) Judge(run string, image []byte, list []mailbox.Decision) ([]mailbox.Decision, error) {
	c, _, err := getImage(image)
	if err != nil {
		return list, nil //nolint:nilerr // its execution returns what is wrong
	}
	in := decisions(list)
	_, refused := admit(c, run, in)
	out := slices.Clone(list)
	for i := range in {
		d := &in[i]
		at := slices.IndexFunc(c.Tickets, func(t agent.Ticket) bool { return t.ID == d.Target || t.Call.ID == d.Target })
		if open := d.find(c.Tickets); open >= 0 {
			at = open
		}
		if c.Run.RunID != run || at < 0 || d.About != nil || d.Action == "" {
			continue
		}
		p := placeOf(c.Tickets[at])
		d.About = &p
		if out[i].Data, err = encode("decision", d); err != nil {
			return list, err
		}
	}
	if len(refused) > 0 {
		return out, refusal(refused)
	}
	return out, nil
}

// about reports whether a decision is about a ticket as it is.
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

// due reports whether a run continues with its tickets as they are: one was decided about, or all of them were.
func due(tickets []agent.Ticket, all bool) bool {
	open := func(t agent.Ticket) bool { return t.Status == agent.TicketOpen }
	left := slices.DeleteFunc(slices.Clone(tickets), open)
	return len(left) > 0 && (!all || len(left) == len(tickets))
}
