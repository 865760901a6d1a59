package mailbox

import (
	"encoding/json"
	"fmt"
)

// encode makes the payload of a request, unless it is too large.
func (m *Mailbox) encode(r Request) ([]byte, error) {
	payload, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("mailbox: request: %w: %w", ErrInvalid, err)
	}
	if err := m.queue.Limits().FitsRequest(len(payload)); err != nil {
		return nil, fmt.Errorf("mailbox: request: %w", err)
	}
	return payload, nil
}
