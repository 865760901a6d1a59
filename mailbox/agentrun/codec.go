package agentrun

import (
	"encoding/json"
	"fmt"

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
	// Taken is agent.Checkpoint.Taken.
	Taken map[string]any `json:"taken,omitempty"`
	// Accepted are messages that were sent to a run under way, and that may not be in the log yet.
	Accepted []abi.Message `json:"accepted,omitempty"`
	// Decided are decisions that were sent to a run under way, and that Tickets may not have yet. Each has its question.
	Decided []agent.Decision `json:"decided,omitempty"`
}

// ticket is an agent.Ticket: its dynamic values, and the rest in JSON.
type ticket struct {
	Call           abi.ToolCall    `json:"call"`
	Parameters     any             `json:"parameters,omitempty"`
	ResponseSchema any             `json:"response_schema,omitempty"`
	Decision       *agent.Decision `json:"decision,omitempty"`
	Rest           []byte          `json:"rest"`
}

func putTicket(t agent.Ticket) (out ticket, err error) {
	out = ticket{Call: t.Call, Parameters: t.Parameters, ResponseSchema: t.ResponseSchema, Decision: t.Decision}
	t.Call, t.Parameters, t.ResponseSchema, t.Decision = abi.ToolCall{}, nil, nil, nil
	out.Rest, err = json.Marshal(t)
	return out, err
}

func (t ticket) get() (out agent.Ticket, err error) {
	err = json.Unmarshal(t.Rest, &out)
	out.Call, out.Parameters, out.ResponseSchema, out.Decision = t.Call, t.Parameters, t.ResponseSchema, t.Decision
	return out, err
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
func putImage(c agent.Checkpoint, accepted []abi.Message, taken []agent.Decision) ([]byte, error) {
	record, err := encodeRecord(c.Run)
	if err != nil {
		return nil, err
	}
	out := image{
		Record: record, Open: c.Open, Revision: int64(c.State.Revision), Values: c.State.Values, Held: c.Held, //nolint:gosec // a counter
		Taken: map[string]any{}, Accepted: accepted, Decided: taken,
	}
	for key, answered := range c.Taken {
		out.Taken[key] = answered
	}
	for _, t := range c.Tickets {
		v, err := putTicket(t)
		if err != nil {
			return nil, fmt.Errorf("agentrun: ticket %.80q: %w", t.ID, err)
		}
		out.Tickets = append(out.Tickets, v)
	}
	return encode("image of a thread", &out)
}

// getImage is the checkpoint of an image, without messages, and with what was decided under way.
func getImage(data []byte) (c agent.Checkpoint, accepted []abi.Message, err error) {
	var in image
	if err := decode("image of a thread", data, &in); err != nil {
		return c, nil, err
	}
	c = agent.Checkpoint{Open: in.Open, Held: in.Held, Taken: make(map[string]bool, len(in.Taken))}
	c.State = agent.StateImage{Revision: uint64(in.Revision), Values: in.Values} //nolint:gosec // a counter
	if c.Run, err = decodeRecord(in.Record); err != nil {
		return c, nil, err
	}
	for key, answered := range in.Taken {
		c.Taken[key] = answered == true
	}
	for _, v := range in.Tickets {
		t, err := v.get()
		if err != nil {
			return c, nil, fmt.Errorf("agentrun: ticket: %w", err)
		}
		c.Tickets = append(c.Tickets, t)
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
