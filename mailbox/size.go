package mailbox

import (
	"encoding/json"
	"fmt"
)

// tooLarge refuses what has more bytes than it may have. Field is the one of [QueueConfig] that says so.
func tooLarge(what string, n, most int, field, mend string) error {
	if n <= most {
		return nil
	}
	return fmt.Errorf("%w: %w: the %s has %d bytes, and QueueConfig.%s is %d; %s, or raise that", ErrInvalid, ErrTooLarge, what, n, field, most, mend)
}

func (l limits) fitsRequest(n int) error {
	return tooLarge("request", n, l.request, "RequestBytes", "keep large data elsewhere and send a reference")
}

func (l limits) fitsCommit(n int) error {
	return tooLarge("commit", n, l.commit, "CommitBytes", "write less at a time, or keep large data elsewhere")
}

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
	if err := m.queue.limits.fitsRequest(r.bytes()); err != nil { // before it is copied
		return nil, fmt.Errorf("mailbox: request: %w", err)
	}
	payload, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("mailbox: request: %w: %w", ErrInvalid, err)
	}
	if err := m.queue.limits.fitsRequest(len(payload)); err != nil {
		return nil, fmt.Errorf("mailbox: request: %w", err)
	}
	return payload, nil
}

// bytes is what a commit writes, besides names.
func (c Commit) bytes() int {
	n := len(c.Image) + len(c.Data) + c.Result.bytes()
	for _, list := range [][]Message{c.Append, c.Replace} {
		for i := range list {
			n += len(list[i].ID) + len(list[i].Run) + len(list[i].Data)
		}
	}
	return n
}

func (r Result) bytes() int { return len(r.Termination) + len(r.Response) + len(r.Error) + len(r.Wait) }
