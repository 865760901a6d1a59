package jet

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// PieceSize bounds one message; servers take 1 MiB by default.
const PieceSize = 512 << 10

// ErrGone is a record that is not there: what refers to it has changed meanwhile, or else it is lost.
var ErrGone = errors.New("is not there")

// Gone is [ErrGone] of the record of a number.
func Gone(seq uint64) error { return fmt.Errorf("record %d %w", seq, ErrGone) }

// Ref finds a record that never changes.
type Ref struct {
	Seq uint64 `json:"s"`
	// Parts are the pieces of a record that is too long for one message.
	Parts []uint64 `json:"p,omitempty"`
}

// First is the number of the first message of the record.
func (r Ref) First() uint64 { return slices.Min(append([]uint64{r.Seq}, r.Parts...)) }

// Record is one message, or several that belong together.
type Record struct {
	Ref

	Subject string
	Header  nats.Header
	Data    []byte
	At      time.Time
}

// Put writes a record, once. The pieces of a long one go into the messages that piece makes, each of a subject of its own that
// differs from the others in its last word.
func (s *Stream) Put(ctx context.Context, msg *nats.Msg, piece func() *nats.Msg, options ...jetstream.PublishOpt) (out Ref, err error) {
	if data := msg.Data; len(data) > PieceSize {
		if out.Parts, err = s.putPieces(ctx, piece, data); err != nil {
			return Ref{}, err
		}
		msg = &nats.Msg{Subject: msg.Subject, Header: clone(msg.Header)}
		refer(msg.Header, out.Parts, piece().Subject)
	}
	out.Seq, err = s.publish(ctx, msg, options...)
	if err != nil {
		return Ref{}, err
	}
	return out, nil
}

// publish writes one message, and returns its number.
func (s *Stream) publish(ctx context.Context, msg *nats.Msg, options ...jetstream.PublishOpt) (uint64, error) {
	ctx, cancel := context.WithTimeout(ctx, s.link.Wait)
	defer cancel()
	ack, err := s.link.JS.PublishMsg(ctx, msg, append(options, jetstream.WithRetryAttempts(0))...)
	if err != nil {
		return 0, fmt.Errorf("natsstore: write: %w", err)
	}
	return ack.Sequence, nil
}

// Begin starts to write a record as [Stream.Put] does, and returns what waits for it, to be called once. Records that are begun one after the
// other go to the server together, and take no goroutine each, but for long ones.
func (s *Stream) Begin(ctx context.Context, msg *nats.Msg, piece func() *nats.Msg, options ...jetstream.PublishOpt) (wait func() (Ref, error)) {
	if len(msg.Data) > PieceSize {
		return s.beginLong(ctx, msg, piece, options)
	}
	if err := context.Cause(ctx); err != nil {
		return func() (Ref, error) { return Ref{}, fmt.Errorf("natsstore: write: %w", err) }
	}
	under, err := s.link.JS.PublishMsgAsync(msg, append(options, jetstream.WithRetryAttempts(0))...)
	if err != nil {
		return func() (Ref, error) { return Ref{}, fmt.Errorf("natsstore: write: %w", err) }
	}
	return func() (Ref, error) {
		select {
		case ack := <-under.Ok():
			return Ref{Seq: ack.Sequence}, nil
		case err := <-under.Err():
			return Ref{}, fmt.Errorf("natsstore: write: %w", err)
		case <-ctx.Done():
			return Ref{}, fmt.Errorf("natsstore: write: %w", context.Cause(ctx))
		}
	}
}

func (s *Stream) beginLong(ctx context.Context, msg *nats.Msg, piece func() *nats.Msg, options []jetstream.PublishOpt) (wait func() (Ref, error)) {
	var out Ref
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, err = s.Put(ctx, msg, piece, options...)
	}()
	return func() (Ref, error) {
		<-done
		return out, err
	}
}

// looked is a record, or none.
type looked struct {
	Record

	found bool
}

// look reads a record.
func (s *Stream) look(ctx context.Context, get func(context.Context) (*jetstream.RawStreamMsg, error)) (looked, error) {
	return look(ctx, s.link, func(ctx context.Context) (out looked, err error) {
		msg, err := get(ctx)
		out.Record, out.found, err = s.whole(ctx, msg, err)
		return out, err
	})
}

// Last reads the latest record of a subject. found is false when there is none.
func (s *Stream) Last(ctx context.Context, subject string) (r Record, found bool, err error) {
	l, err := s.look(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.GetLastMsgForSubject(ctx, subject)
	})
	return l.Record, l.found, err
}

// At reads the record of a number.
func (s *Stream) At(ctx context.Context, seq uint64) ([]byte, error) {
	l, err := s.look(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) { return s.GetMsg(ctx, seq) })
	if err == nil && !l.found {
		err = Gone(seq)
	}
	return l.Data, err
}

// Next reads the first record of a subject from a number on.
func (s *Stream) Next(ctx context.Context, subject string, from uint64) (r Record, found bool, err error) {
	l, err := s.look(ctx, func(ctx context.Context) (*jetstream.RawStreamMsg, error) {
		return s.GetMsg(ctx, from, jetstream.WithGetMsgSubject(subject))
	})
	return l.Record, l.found, err
}

// whole puts the pieces of a record together.
func (s *Stream) whole(ctx context.Context, msg *jetstream.RawStreamMsg, err error) (Record, bool, error) {
	if errors.Is(err, jetstream.ErrMsgNotFound) {
		return Record{}, false, nil
	}
	if err != nil {
		return Record{}, false, fmt.Errorf("natsstore: read: %w", err)
	}
	r := Record{Ref: Ref{Seq: msg.Sequence}, Subject: msg.Subject, Header: msg.Header, Data: msg.Data, At: msg.Time}
	if r.Parts, err = Parts(msg.Header); err != nil {
		return Record{}, false, err
	}
	r.Data, err = s.pieces(ctx, r)
	return r, err == nil, err
}
