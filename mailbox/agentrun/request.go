package agentrun

import (
	"cmp"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
	threads "github.com/mortise-dev/mortise/thread"
)

// WakeText is what a run reads that is woken since its background tasks may have changed.
const WakeText = "<background-tasks-updated />"

// Extras are what a request has for the agent besides its messages.
type Extras struct {
	// FrontendTools are executed by the client.
	FrontendTools []abi.Tool `json:"frontend_tools,omitempty"`
	// Override changes each inference of the run.
	Override *abi.InferenceOverride `json:"override,omitempty"`
	// TransportRequestID, SenderID, ParentThreadID and DispatchIDHint are those of the mailbox.Request, see [Extras.Apply].
	TransportRequestID string `json:"transport_request_id,omitempty"`
	SenderID           string `json:"sender_id,omitempty"`
	ParentThreadID     string `json:"parent_thread_id,omitempty"`
	DispatchIDHint     string `json:"dispatch_id_hint,omitempty"`
}

// Empty reports whether there is nothing in it.
func (e Extras) Empty() bool {
	return len(e.FrontendTools) == 0 && e.Override == nil && e.TransportRequestID+e.SenderID+e.ParentThreadID+e.DispatchIDHint == ""
}

// Apply makes the extras those of a request. The ids become the request's own, as far as they are set; the rest is its Extras.
func (e Extras) Apply(r *mailbox.Request) (err error) {
	r.TransportRequestID = cmp.Or(e.TransportRequestID, r.TransportRequestID)
	r.SenderID = cmp.Or(e.SenderID, r.SenderID)
	r.ParentThreadID = cmp.Or(e.ParentThreadID, r.ParentThreadID)
	r.DispatchIDHint = cmp.Or(e.DispatchIDHint, r.DispatchIDHint)
	e.TransportRequestID, e.SenderID, e.ParentThreadID, e.DispatchIDHint = "", "", "", ""
	r.Extras, err = e.Encode()
	return err
}

// Encode returns the extras for mailbox.Request.Extras: nil when they are empty.
func (e Extras) Encode() ([]byte, error) {
	if e.Empty() {
		return nil, nil
	}
	return encode("extras of a request", &e)
}

// DecodeExtras reads what [Extras.Encode] wrote.
func DecodeExtras(data []byte) (e Extras, err error) {
	if err := decode("extras of a request", data, &e); err != nil {
		return Extras{}, fmt.Errorf("%w: %w", mailbox.ErrPermanent, err)
	}
	return e, nil
}

// Inputs encodes messages for a request.
func Inputs(messages ...abi.Message) ([]mailbox.Input, error) {
	var out []mailbox.Input
	for i := range messages {
		data, err := encode("message", &messages[i])
		if err != nil {
			return nil, err
		}
		out = append(out, mailbox.Input{ID: messages[i].ID, Data: data})
	}
	return out, nil
}

// Decisions encodes decisions for a request, or for Mailbox.Decide.
func Decisions(list ...agent.Decision) ([]mailbox.Decision, error) {
	var out []mailbox.Decision
	for _, d := range list {
		data, err := encode("decision", &d)
		if err != nil {
			return nil, err
		}
		out = append(out, mailbox.Decision{Call: d.Target, Data: data})
	}
	return out, nil
}

// Wake is the request by which a run continues whose background tasks may have changed. It can be
// mailbox.Config.Wake.
func Wake(run mailbox.Run) (mailbox.Request, bool) {
	inputs, err := Inputs(abi.Message{Role: abi.RoleUser, Visibility: abi.VisibilityInternal, Content: []abi.ContentBlock{abi.Text(WakeText)}})
	return mailbox.Request{
		Thread: run.Thread, Run: run.ID, Origin: mailbox.OriginInternal, Mode: string(abi.RunInternalWake), Adapter: mailbox.OriginInternal, Messages: inputs,
	}, err == nil
}

// messages decodes what a request brings.
func messages(inputs []mailbox.Input) ([]abi.Message, error) {
	var out []abi.Message
	for _, in := range inputs {
		m := abi.Message{}
		if err := decode("message", in.Data, &m); err != nil {
			return nil, fmt.Errorf("%w: %w", mailbox.ErrPermanent, err)
		}
		m.ID = in.ID
		out = append(out, m)
	}
	return out, nil
}

// decisions decodes decisions. One that cannot be read has no action, and is refused.
func decisions(list []mailbox.Decision) []agent.Decision {
	var out []agent.Decision
	for _, d := range list {
		v := agent.Decision{}
		if err := decode("decision", d.Data, &v); err != nil {
			v = agent.Decision{}
		}
		v.Target = d.Call
		out = append(out, v)
	}
	return out
}

// DecodeMessage reads a message of a thread's log.
func DecodeMessage(m mailbox.Message) (out abi.Message, err error) {
	out, err = threads.Decode(m.Data)
	out.ID = m.ID
	return out, err
}
