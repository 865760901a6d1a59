package natsstore

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// damaged says that an error is about what was read, and not about reading it. What is gone meanwhile counts too: the head says
// whether it has changed.
func damaged(err error) bool {
	return !transient(err) && !errors.Is(err, context.Canceled) && !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, errPatience)
}

// salvage reads of a head what can be read.
func (s *Store) salvage(ctx context.Context, id string) (*thread, error) {
	r, found, err := s.last(ctx, s.names.head(id))
	if err != nil && damaged(err) {
		head, there, late := s.stream.LastMark(ctx, s.names.head(id))
		r, found, err = record{ref: head.Ref, at: head.At}, there, late
	}
	if err != nil {
		return nil, err
	}
	t := s.newThread(id)
	if found {
		t.head = r
		if err := t.doc.read(r.data); t.doc.Format > format {
			return nil, err
		} else if err != nil {
			t.doc = document{Head: salvaged(r)}
		}
	}
	t.doc.ready(id)
	if err := t.gather(ctx); err != nil {
		if !damaged(err) {
			return nil, err
		}
		t.doc.waiting, t.doc.Queue, t.doc.QueuePages = newWaitlist(s.looks), nil, nil
	}
	return t, nil
}

// salvaged is what can be told of a head that cannot be read. Each claim was a record of its own, so the number of the latest is not below
// any fence. The time is that of the servers. There may be a claim if it does not say that there is none.
func salvaged(r record) headFields {
	var doc struct {
		Head map[string]json.RawMessage `json:"h"`
	}
	out := headFields{Fence: r.Seq, UpdatedAt: r.at.UTC().Truncate(time.Millisecond), Claim: &mailbox.Claim{}}
	if decode(r.data, &doc) != nil || doc.Head == nil {
		return out
	}
	_ = decode(doc.Head["Tenant"], &out.Tenant) // what it is not stays zero
	var fence uint64
	if decode(doc.Head["Fence"], &fence) == nil && fence > 0 {
		out.Fence = fence
	}
	claim, claimed := doc.Head["Claim"]
	if !claimed {
		out.Claim = nil
		return out
	}
	var parts map[string]json.RawMessage
	if decode(claim, &parts) == nil {
		c := out.Claim
		for name, to := range map[string]any{"Dispatch": &c.Dispatch, "Token": &c.Token, "Fence": &c.Fence, "Owner": &c.Owner, "Until": &c.Until} {
			_ = decode(parts[name], to) // as above
		}
	}
	return out
}
