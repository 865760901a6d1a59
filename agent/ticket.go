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
}

// decided applies decisions to tickets, all of them or none, and returns the
// tickets as they are then.
func decided(tickets []Ticket, decisions []Decision, now time.Time, newID func() string) ([]Ticket, error) {
	out := slices.Clone(tickets)
	for _, d := range decisions {
		i := slices.IndexFunc(out, func(t Ticket) bool { return t.Status == TicketOpen && t.ID == d.Target })
		if i < 0 {
			i = slices.IndexFunc(out, func(t Ticket) bool { return t.Status == TicketOpen && t.Call.ID == d.Target })
		}
		switch {
		case i < 0:
			return nil, fmt.Errorf("invalid resume: tool call or suspension %.120s %w", d.Target, ErrNoTicket)
		case d.Action == ActionResume:
			out[i].Status = TicketResuming
		case d.Action == ActionCancel:
			out[i].Status = TicketCancelled
		default:
			return nil, fmt.Errorf("invalid resume: decision about %.120s: action %.40q is not one of resume, cancel", d.Target, d.Action)
		}
		d.ID = cmp.Or(d.ID, newID())
		out[i].Decision, out[i].UpdatedAt = &d, now
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

// dueTickets are those that were decided: first the cancelled ones. With all, there
// are none while one is still open.
func (t *Thread) dueTickets(all bool) []Ticket {
	t.mu.Lock()
	defer t.mu.Unlock()
	due := slices.DeleteFunc(slices.Clone(t.tickets), func(k Ticket) bool { return k.Status == TicketOpen })
	if all && len(due) < len(t.tickets) {
		return nil
	}
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
func (t *Thread) seal(all bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	open := func(k Ticket) bool { return k.Status == TicketOpen }
	left := slices.DeleteFunc(slices.Clone(t.tickets), open)
	due := len(left) > 0 && (!all || len(left) == len(t.tickets))
	t.sealed = !due
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
