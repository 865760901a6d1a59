package jet

import (
	"context"
	"errors"
	"maps"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Send writes a record behind whatever there is, and tries until ctx is over or Link.Patience. Servers keep one of the copies that may
// arrive.
func (s *Stream) Send(ctx context.Context, msg *nats.Msg, piece func() *nats.Msg) (Ref, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, s.link.Patience, ErrPatience)
	defer cancel()
	id := uuid.NewString()
	for n := 0; ; n++ {
		r, err := s.Put(ctx, &nats.Msg{Subject: msg.Subject, Header: clone(msg.Header), Data: msg.Data}, piece, jetstream.WithMsgID(id))
		if err == nil || !Transient(err) && !inProcess(err) {
			return r, err
		}
		if late := Pause(ctx, n); late != nil {
			return Ref{}, errors.Join(late, err)
		}
	}
}

func clone(h nats.Header) nats.Header {
	out := nats.Header{}
	maps.Copy(out, h)
	return out
}

// inProcess says that a copy of a message is being written.
func inProcess(err error) bool {
	const duplicateConflict = 10158
	var api jetstream.JetStreamError
	return errors.As(err, &api) && api.APIError() != nil && api.APIError().ErrorCode == duplicateConflict
}
