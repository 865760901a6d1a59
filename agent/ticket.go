package agent

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// ErrNoTicket is a decision about a call that does not wait for one.
var ErrNoTicket = errors.New("not found")

// TicketStatus is where a suspended call stands.
type TicketStatus string

// Statuses of a ticket. A call that has its result has no ticket any more.
const (
	// TicketOpen waits for a decision.
	TicketOpen TicketStatus = "suspended"
	// TicketResuming was decided, and the call is to be executed. It is still so when
	// the process ends meanwhile: the next one executes it, with the same
	// idempotency key.
	TicketResuming TicketStatus = "resuming"
	// TicketCancelled was decided, and the call is not to be executed.
	TicketCancelled TicketStatus = "cancelled"
)

// Ticket is a call that waits for a decision.
type Ticket struct {
	abi.SuspendTicket
	Status TicketStatus `json:"status"`
	Call   abi.ToolCall `json:"call"`
	// MessageID is that of the tool message that the result replaces.
	MessageID string `json:"message_id"`
	// Key is the idempotency key of the execution that is to come.
	Key    string `json:"idempotency_key"`
	Reason string `json:"reason,omitempty"`
	// RewrittenBy are the plugins that changed the arguments of Call.
	RewrittenBy []string `json:"rewritten_by,omitempty"`
	// Malformed means that they are text that is not JSON, and that no plugin repaired.
	Malformed bool `json:"malformed,omitempty"`
	// By is the plugin whose gate asked; empty when the tool itself did.
	By string `json:"by,omitempty"`
	// Rounds is how often the call was resumed.
	Rounds    int       `json:"rounds,omitempty"`
	Decision  *Decision `json:"decision,omitempty"`
	UpdatedAt time.Time `json:"updated_at"`
}

// DecisionAction is what was decided.
type DecisionAction string

// Actions of a decision.
const (
	ActionResume DecisionAction = "resume"
	ActionCancel DecisionAction = "cancel"
)

// Decision is what was decided about a suspended call.
type Decision struct {
	// ID is made when empty.
	ID string `json:"decision_id"`
	// Target is the id of the ticket or of the call.
	Target string         `json:"target"`
	Action DecisionAction `json:"action"`
	// Result is the answer to what the ticket asks for. It must be a dynamic value of
	// the contract.
	Result any `json:"result,omitempty"`
	// Reason is a text for people.
	Reason string `json:"reason,omitempty"`
	// By is who decided, as far as it is known, and Choice what they chose, in the word of the protocol by which it came: allow, deny or result.
	By     string `json:"by,omitempty"`
	Choice string `json:"choice,omitempty"`
	// About is the question that it answers, nil if that is not known. A call may ask several times.
	About *Question `json:"about,omitempty"`
}

// Question is what a call asks: the message of the call and its round name it.
type Question struct {
	MessageID string `json:"message_id"`
	Rounds    int    `json:"rounds,omitempty"`
}

// Question is that of a ticket.
func (t *Ticket) Question() Question { return Question{MessageID: t.MessageID, Rounds: t.Rounds} }

// Decide notes what was decided.
func (t *Ticket) Decide(d Decision) {
	t.Status, t.Decision = TicketResuming, &d
	if d.Action == ActionCancel {
		t.Status = TicketCancelled
	}
}

// Find returns the index of the ticket that waits for a decision of this kind, -1 if none does.
func (d *Decision) Find(tickets []Ticket) int {
	if d.Action != ActionResume && d.Action != ActionCancel {
		return -1
	}
	open := func(id func(*Ticket) string) int {
		return slices.IndexFunc(tickets, func(t Ticket) bool {
			return t.Status == TicketOpen && id(&t) == d.Target && (d.About == nil || *d.About == t.Question())
		})
	}
	if i := open(func(t *Ticket) string { return t.ID }); i >= 0 {
		return i
	}
	return open(func(t *Ticket) string { return t.Call.ID })
}

// Due reports whether a run continues with its tickets as they are: one was decided about, or with [ParallelBatch] all of them.
func Due(tickets []Ticket, mode ToolMode) bool {
	open := 0
	for i := range tickets {
		if tickets[i].Status == TicketOpen {
			open++
		}
	}
	return open < len(tickets) && (mode != ParallelBatch || open == 0)
}

// decided applies decisions to tickets, all of them or none, and returns the
// tickets as they are then.
func decided(tickets []Ticket, decisions []Decision, now time.Time, newID func() string) ([]Ticket, error) {
	out := slices.Clone(tickets)
	for _, d := range decisions {
		i := d.Find(out)
		switch {
		case d.Action != ActionResume && d.Action != ActionCancel:
			return nil, fmt.Errorf("invalid resume: decision about %.120s: action %.40q is not one of resume, cancel", d.Target, d.Action)
		case i < 0:
			return nil, fmt.Errorf("invalid resume: tool call or suspension %.120s %w", d.Target, ErrNoTicket)
		}
		d.ID = cmp.Or(d.ID, newID())
		out[i].Decide(d)
		out[i].UpdatedAt = now
	}
	return out, nil
}

func sortTickets(tickets []Ticket) {
	slices.SortStableFunc(tickets, func(a, b Ticket) int {
		return cmp.Or(strings.Compare(a.Call.ID, b.Call.ID), strings.Compare(a.ID, b.ID))
	})
}

// openTickets are those that still wait.
func (t *Thread) openTickets() []Ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	out := slices.DeleteFunc(slices.Clone(t.tickets), func(k Ticket) bool { return k.Status != TicketOpen })
	sortTickets(out)
	return out
}

// dueTickets are those with which the run continues: first the cancelled ones.
func (t *Thread) dueTickets(mode ToolMode) []Ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !Due(t.tickets, mode) {
		return nil
	}
	due := slices.DeleteFunc(slices.Clone(t.tickets), func(k Ticket) bool { return k.Status == TicketOpen })
	sortTickets(due)
	slices.SortStableFunc(due, func(a, b Ticket) int {
		rank := func(k Ticket) int {
			if k.Status == TicketCancelled {
				return 0
			}
			return 1
		}
		return rank(a) - rank(b)
	})
	return due
}

// seal refuses further decisions, unless there are some that the run has to execute
// first. So none is accepted and then ignored.
func (t *Thread) seal(mode ToolMode) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.sealed = !Due(t.tickets, mode)
	return t.sealed
}

// putTicket adds a ticket, in place of that of the same message if there is one.
func (t *Thread) putTicket(k Ticket) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tickets = append(slices.DeleteFunc(slices.Clone(t.tickets), func(o Ticket) bool { return o.MessageID == k.MessageID }), k)
}

// dropTicket forgets the ticket of a message.
func (t *Thread) dropTicket(messageID string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.tickets = slices.DeleteFunc(slices.Clone(t.tickets), func(o Ticket) bool { return o.MessageID == messageID })
}

// decide applies decisions to a thread with a run. What does not fit is refused
// and changes nothing.
func (t *Thread) decide(decisions []Decision, now time.Time, newID func() string) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.sealed {
		return ErrNoRun
	}
	tickets, err := decided(t.tickets, decisions, now, newID)
	if err != nil {
		return err
	}
	t.tickets = tickets
	select {
	case t.wake <- struct{}{}:
	default:
	}
	return nil
}
