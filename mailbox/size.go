package mailbox

import (
	"encoding/json"
	"fmt"
)

// bytes is what a request has, at least, when it is encoded.
func (r Request) bytes() int {
	n := len(r.Extras) + len(r.Run) + len(r.Agent) + len(r.Parent) + len(r.Origin) + len(r.Adapter) + len(r.Mode) +
		len(r.TransportRequestID) + len(r.SenderID) + len(r.ParentThreadID) + len(r.DispatchIDHint)
	for _, m := range r.Messages {
		n += len(m.ID) + len(m.Data)
	}
	for _, d := range r.Decisions {
		n += len(d.Call) + len(d.Data)
	}
	for k, v := range r.Trace {
		n += len(k) + len(v)
	}
	return n
}

// encode makes the payload of a request, unless it is too large.
func (m *Mailbox) encode(r Request) ([]byte, error) {
	if err := m.queue.Limits().FitsRequest(r.bytes()); err != nil { // before it is copied
		return nil, fmt.Errorf("mailbox: request: %w", err)
	}
	payload, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("mailbox: request: %w: %w", ErrInvalid, err)
	}
	if err := m.queue.Limits().FitsRequest(len(payload)); err != nil {
		return nil, fmt.Errorf("mailbox: request: %w", err)
	}
	return payload, nil
}
