package agentrun

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/wire"
)

// format keeps integers, floats and bytes of dynamic values apart.
const format = wire.MessagePack

// image is what a thread has besides its log.
type image struct {
	// Record is the latest run's, in JSON, without its tickets.
	Record  []byte        `json:"record,omitempty"`
	Open    []abi.Message `json:"open,omitempty"`
	Tickets []ticket      `json:"tickets,omitempty"`
	// Revision and Values are the state of the plugins.
	Revision int64          `json:"revision,omitempty"`
	Values   map[string]any `json:"values,omitempty"`
	Held     []abi.Notice   `json:"held,omitempty"`
	// Taken are the keys of notifications that the log has, and that may come again, without an answer of the model; Answered are those with one.
	Taken    []string `json:"taken,omitempty"`
	Answered []string `json:"answered,omitempty"`
	// Accepted are messages that were sent to a run under way, and that may not be in the log yet.
	Accepted []abi.Message `json:"accepted,omitempty"`
	// Decided are decisions that were sent to a run under way, and that Tickets may not have yet.
	Decided []decided `json:"decided,omitempty"`
}

// decided is a decision about a ticket as the run found it: by its message and its round.
type decided struct {
	MessageID string   `json:"message_id"`
	Rounds    int64    `json:"rounds,omitempty"`
	Decision  decision `json:"decision"`
}

// ticket is an agent.Ticket.
type ticket struct {
	Suspend   abi.SuspendTicket `json:"suspend"`
	Status    string            `json:"status,omitempty"`
	Call      abi.ToolCall      `json:"call"`
	MessageID string            `json:"message_id,omitempty"`
	Key       string            `json:"key,omitempty"`
	Reason    string            `json:"reason,omitempty"`
	By        string            `json:"by,omitempty"`
	// RewrittenBy and Malformed count when the call is executed, after the decision.
	RewrittenBy []string  `json:"rewritten_by,omitempty"`
	Malformed   bool      `json:"malformed,omitempty"`
	Rounds      int64     `json:"rounds,omitempty"`
	Decision    *decision `json:"decision,omitempty"`
	UpdatedAt   int64     `json:"updated_at,omitempty"`
}

// decision is an agent.Decision. About is the question that it answers, if that is known: a call may ask several times.
type decision struct {
	ID     string `json:"id,omitempty"`
	Target string `json:"target,omitempty"`
	Action string `json:"action,omitempty"`
	Result any    `json:"result,omitempty"`
	Reason string `json:"reason,omitempty"`
	About  *place `json:"about,omitempty"`
}

// place names a question: by the message of its call and by its round.
type place struct {
	MessageID string `json:"message_id"`
	Rounds    int64  `json:"rounds,omitempty"`
}

func putTicket(t agent.Ticket) ticket {
	out := ticket{
		Suspend: t.SuspendTicket, Status: string(t.Status), Call: t.Call, MessageID: t.MessageID, Key: t.Key, Reason: t.Reason, By: t.By,
		RewrittenBy: t.RewrittenBy, Malformed: t.Malformed, Rounds: int64(t.Rounds), UpdatedAt: t.UpdatedAt.UnixNano(),
	}
	if t.Decision != nil {
		d := putDecision(*t.Decision)
		out.Decision = &d
	}
	return out
}

func (t ticket) get() agent.Ticket {
	out := agent.Ticket{
		SuspendTicket: t.Suspend, Status: agent.TicketStatus(t.Status), Call: t.Call, MessageID: t.MessageID, Key: t.Key, Reason: t.Reason, By: t.By,
		RewrittenBy: t.RewrittenBy, Malformed: t.Malformed, Rounds: int(t.Rounds), UpdatedAt: time.Unix(0, t.UpdatedAt).UTC(),
	}
	if t.Decision != nil {
		d := t.Decision.get()
		out.Decision = &d
	}
	return out
}

func putDecision(d agent.Decision) decision {
	return decision{ID: d.ID, Target: d.Target, Action: string(d.Action), Result: d.Result, Reason: d.Reason}
}

func (d decision) get() agent.Decision {
	return agent.Decision{ID: d.ID, Target: d.Target, Action: agent.DecisionAction(d.Action), Result: d.Result, Reason: d.Reason}
}

// encodeRecord leaves out the tickets, which the thread has.
func encodeRecord(r agent.Record) ([]byte, error) {
	if r.Waiting != nil {
		w := *r.Waiting
		w.Tickets = nil
		r.Waiting = &w
	}
	data, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("agentrun: record of run %.80q: %w", r.RunID, err)
	}
	return data, nil
}

func decodeRecord(data []byte) (r agent.Record, err error) {
	if len(data) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(data, &r); err != nil {
		return r, fmt.Errorf("agentrun: record of a run: %w", err)
	}
	return r, nil
}

func encode(what string, v any) ([]byte, error) {
	data, err := format.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("agentrun: %s: %w", what, err)
	}
	return data, nil
}

func decode(what string, data []byte, v any) error {
	if len(data) == 0 {
		return nil
	}
	if err := format.Unmarshal(data, v); err != nil {
		return fmt.Errorf("agentrun: %s: %w", what, err)
	}
	return nil
}

// putImage is the image of a checkpoint.
func putImage(c agent.Checkpoint, accepted []abi.Message, taken []decided) ([]byte, error) {
	record, err := encodeRecord(c.Run)
	if err != nil {
		return nil, err
	}
	out := image{
		Record: record, Open: c.Open, Revision: int64(c.State.Revision), Values: c.State.Values, Held: c.Held, Accepted: accepted, Decided: taken, //nolint:gosec // a counter
	}
	for _, key := range slices.Sorted(maps.Keys(c.Taken)) {
		if c.Taken[key] {
			out.Answered = append(out.Answered, key)
		} else {
			out.Taken = append(out.Taken, key)
		}
	}
	for _, t := range c.Tickets {
		out.Tickets = append(out.Tickets, putTicket(t))
	}
	return encode("image of a thread", &out)
}

// getImage is the checkpoint of an image, without messages, and with what was decided under way.
func getImage(data []byte) (c agent.Checkpoint, accepted []abi.Message, err error) {
	var in image
	if err := decode("image of a thread", data, &in); err != nil {
		return c, nil, err
	}
	c.Run, err = decodeRecord(in.Record)
	if err != nil {
		return c, nil, err
	}
	c.Open, c.Held = in.Open, in.Held
	c.Taken = make(map[string]bool, len(in.Taken)+len(in.Answered))
	for _, key := range in.Taken {
		c.Taken[key] = false
	}
	for _, key := range in.Answered {
		c.Taken[key] = true
	}
	c.State = agent.StateImage{Revision: uint64(in.Revision), Values: in.Values} //nolint:gosec // a counter
	for _, t := range in.Tickets {
		c.Tickets = append(c.Tickets, t.get())
	}
	c.Tickets = resolved(c.Tickets, in.Decided)
	for _, t := range c.Tickets {
		if w := c.Run.Waiting; w != nil && t.Status == agent.TicketOpen {
			w.Tickets = append(w.Tickets, t)
		}
	}
	return c, in.Accepted, nil
}

// DecodeRun reads the record of a thread's latest run from the thread's image, with the tickets that it waits for.
func DecodeRun(image []byte) (agent.Record, error) {
	c, _, err := getImage(image)
	return c.Run, err
}
