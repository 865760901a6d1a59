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
func (k *keeper) decide(ctx context.Context, list []agent.Decision, hand func(...agent.Decision) error) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	// A run that waits by its latest checkpoint continues with a dispatch of its own.
	if r := k.thread.Run; k.closed || r.RunID != k.job.Run.ID || r.Status != agent.StatusRunning {
		return false
	}
	list = slices.DeleteFunc(slices.Clone(list), k.has)
	for n := range list {
		i := list[n].Find(k.thread.Tickets)
		if i < 0 {
			return false
		}
		about := k.thread.Tickets[i].Question()
		list[n].About = &about
	}
	if len(list) == 0 {
		return true
	}
	if err := hand(list...); err != nil {
		return false
	}
	// Also if the commit fails: the run has it, and its next checkpoint has it.
	k.taken = append(k.taken, list...)
	return k.extra(ctx, k.accepted, k.taken) == nil
}

// has reports whether the run got a decision before. The caller holds the lock.
func (k *keeper) has(d agent.Decision) bool {
	return slices.ContainsFunc(k.taken, func(o agent.Decision) bool { return o.ID == d.ID }) ||
		slices.ContainsFunc(k.thread.Tickets, func(t agent.Ticket) bool { return t.Decision != nil && t.Decision.ID == d.ID })
}

// admit splits decisions about a run: those that it waits for, each about another call, and the targets of the rest. A run that is not
// the latest of its thread, or that has ended, waits for nothing.
func admit(c agent.Checkpoint, run string, list []agent.Decision) (taken []agent.Decision, refused []string) {
	tickets := slices.Clone(c.Tickets)
	if c.Run.RunID != run || c.Run.Status == agent.StatusDone {
		tickets = nil
	}
	for _, d := range list {
		i := d.Find(tickets)
		if i < 0 {
			refused = append(refused, d.Target)
			continue
		}
		tickets[i].Decide(d)
		taken = append(taken, d)
	}
	return taken, refused
}

// refusal names the decisions that no call waits for.
func refusal(targets []string) error {
	return fmt.Errorf("agentrun: %w: no call or suspension %.120q waits for such a decision: it was decided before, or never asked", mailbox.ErrRefused, targets)
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
		if open := d.Find(c.Tickets); open >= 0 {
			at = open
		}
		if c.Run.RunID != run || at < 0 || d.About != nil || d.Action == "" {
			continue
		}
		about := c.Tickets[at].Question()
		d.About = &about
		if out[i].Data, err = encode("decision", d); err != nil {
			return list, err
		}
	}
	switch {
	case c.Run.RunID == run && slices.ContainsFunc(in, func(d agent.Decision) bool { return answered(d, c.Tickets) }):
		return out, fmt.Errorf("agentrun: %.120q: %w", refused, mailbox.ErrDecided)
	case len(refused) > 0:
		return out, refusal(refused)
	default:
		return out, nil
	}
}

// answered reports whether a decision is about a call that has one, and does not wait for another.
func answered(d agent.Decision, tickets []agent.Ticket) bool {
	return d.Find(tickets) < 0 && slices.ContainsFunc(tickets, func(t agent.Ticket) bool {
		return t.Decision != nil && (t.ID == d.Target || t.Call.ID == d.Target)
	})
}

// pending are the decisions that tickets do not show.
func pending(list []agent.Decision, tickets []agent.Ticket) []agent.Decision {
	return slices.DeleteFunc(slices.Clone(list), func(d agent.Decision) bool { return d.Find(tickets) < 0 })
}

// resolved are tickets with what was decided about them under way.
func resolved(tickets []agent.Ticket, list []agent.Decision) []agent.Ticket {
	tickets = slices.Clone(tickets)
	for _, d := range list {
		if i := d.Find(tickets); i >= 0 {
			tickets[i].Decide(d)
		}
	}
	return tickets
}
