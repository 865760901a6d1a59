package agentrun

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/wire"
)

// format keeps integers, floats and bytes of dynamic values apart, which JSON does not.
const format = wire.MessagePack

// image is what a thread has besides its log: a checkpoint in JSON, and what has dynamic values by itself.
type image struct {
	Checkpoint []byte         `json:"checkpoint,omitempty"`
	Open       []abi.Message  `json:"open,omitempty"`
	Held       []abi.Notice   `json:"held,omitempty"`
	Values     map[string]any `json:"values,omitempty"`
	Tickets    []question     `json:"tickets,omitempty"`
	// Accepted are messages that were sent to a run under way, and that may not be in the log yet.
	Accepted []abi.Message `json:"accepted,omitempty"`
	// Decided are decisions that were sent to a run under way, and that Tickets may not have yet. Each has its question.
	Decided []agent.Decision `json:"decided,omitempty"`
}

// question is what an agent.Ticket has of dynamic values.
type question struct {
	Call           abi.ToolCall    `json:"call"`
	Parameters     any             `json:"parameters,omitempty"`
	ResponseSchema any             `json:"response_schema,omitempty"`
	Decision       *agent.Decision `json:"decision,omitempty"`
}

// encodeRecord leaves out the tickets, which the thread has.
func encodeRecord(r agent.Record) ([]byte, error) {
	data, err := json.Marshal(withoutTickets(r))
	if err != nil {
		return nil, fmt.Errorf("agentrun: record of run %.80q: %w", r.RunID, err)
	}
	return data, nil
}

func withoutTickets(r agent.Record) agent.Record {
	if r.Waiting != nil {
		w := *r.Waiting
		w.Tickets = nil
		r.Waiting = &w
	}
	return r
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

// putImage is the image of a checkpoint, with what came under way.
func putImage(c agent.Checkpoint, accepted []abi.Message, decided []agent.Decision) ([]byte, error) {
	out := image{Open: c.Open, Held: c.Held, Values: c.State.Values, Accepted: accepted, Decided: decided}
	c.Run, c.Tickets = withoutTickets(c.Run), slices.Clone(c.Tickets)
	for i := range c.Tickets {
		t := &c.Tickets[i]
		out.Tickets = append(out.Tickets, question{t.Call, t.Parameters, t.ResponseSchema, t.Decision})
		t.Call, t.Parameters, t.ResponseSchema, t.Decision = abi.ToolCall{}, nil, nil, nil
	}
	c.From, c.Messages, c.Edited, c.Open, c.Held, c.State.Values = 0, nil, nil, nil, nil, nil
	var err error
	if out.Checkpoint, err = json.Marshal(c); err != nil {
		return nil, fmt.Errorf("agentrun: checkpoint of run %.80q: %w", c.Run.RunID, err)
	}
	return encode("image of a thread", &out)
}

// errOld is an image without a checkpoint, which versions before the first release wrote.
var errOld = errors.New("agentrun: the image of the thread is of an older version of mortise and cannot be continued; use a new thread or a new store")

// getImage is the checkpoint of an image, without messages, and with what was decided under way.
func getImage(data []byte) (c agent.Checkpoint, accepted []abi.Message, err error) {
	var in image
	if err := decode("image of a thread", data, &in); err != nil || len(data) == 0 {
		return c, nil, err
	}
	if len(in.Checkpoint) == 0 {
		return c, nil, errOld
	}
	if err := json.Unmarshal(in.Checkpoint, &c); err != nil {
		return c, nil, fmt.Errorf("agentrun: checkpoint of a thread: %w", err)
	}
	if len(c.Tickets) != len(in.Tickets) {
		return c, nil, fmt.Errorf("agentrun: checkpoint of a thread has %d tickets, and %d questions", len(c.Tickets), len(in.Tickets))
	}
	c.Open, c.Held, c.State.Values = in.Open, in.Held, in.Values
	for i, q := range in.Tickets {
		t := &c.Tickets[i]
		t.Call, t.Parameters, t.ResponseSchema, t.Decision = q.Call, q.Parameters, q.ResponseSchema, q.Decision
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
