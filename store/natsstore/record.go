package natsstore

import (
	"context"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

const (
	reconnectWait = 100 * time.Millisecond
	pingInterval  = 2 * time.Second
	// writerHeader is the store that wrote a record.
	writerHeader = "Mortise-Writer"
	// wholeHeader is the subject of the record that a piece belongs to.
	wholeHeader = "Mortise-Whole"
)

// errGone is a record that is not there: its head has changed meanwhile, or else it is lost.
var errGone = jet.ErrGone

// gone is errGone of what made an id taken, or of what it carries.
func gone(kind mailbox.Kind, id string) error {
	return fmt.Errorf("the record of %s %.80q %w", kind, id, errGone)
}

// ref finds a record that never changes.
type ref = jet.Ref

// record is one message, or several that belong together.
type record struct {
	ref

	data []byte
	at   time.Time
}

// put writes a record. Pieces of a long one go under names of the thread's.
func (s *Store) put(ctx context.Context, thread, subject string, data []byte, options ...jetstream.PublishOpt) (ref, error) {
	return s.stream.Put(ctx, s.envelope(subject, data), s.piece(thread, subject), options...)
}

// begin starts to write a record, and returns what waits for it.
func (s *Store) begin(ctx context.Context, thread, subject string, data []byte, options ...jetstream.PublishOpt) (wait func() (ref, error)) {
	return s.stream.Begin(ctx, s.envelope(subject, data), s.piece(thread, subject), options...)
}

func (s *Store) envelope(subject string, data []byte) *nats.Msg {
	return &nats.Msg{Subject: subject, Data: data, Header: nats.Header{writerHeader: {s.id}}}
}

func (s *Store) piece(thread, subject string) func() *nats.Msg {
	return func() *nats.Msg {
		return &nats.Msg{Subject: s.names.part(thread), Header: nats.Header{wholeHeader: {subject}}}
	}
}

// last reads the latest record of a subject. found is false when there is none.
func (s *Store) last(ctx context.Context, subject string) (record, bool, error) {
	r, found, err := s.stream.Last(ctx, subject)
	return record{ref: r.Ref, data: r.Data, at: r.At}, found, err
}

// at reads the record of a number.
func (s *Store) at(ctx context.Context, seq uint64) ([]byte, error) { return s.stream.At(ctx, seq) }

// next reads the first record of a subject from a number on.
func (s *Store) next(ctx context.Context, subject string, from uint64) (record, bool, error) {
	r, found, err := s.stream.Next(ctx, subject, from)
	return record{ref: r.Ref, data: r.Data, at: r.At}, found, err
}

// sure makes certain that what is read from then on is not older: a leader that is cut off does not know that there is another.
func (s *Store) sure(ctx context.Context) error { return s.stream.Sure(ctx, s.names.quorum()) }

// ask repeats a question while nobody can answer.
func (s *Store) ask(ctx context.Context, question func(context.Context) error) error {
	return s.stream.Ask(ctx, question)
}

var errPatience = jet.ErrPatience

func partsOf(h nats.Header) ([]uint64, error) { return jet.Parts(h) }

func transient(err error) bool { return jet.Transient(err) }

func overtaken(err error) bool { return jet.Overtaken(err) }

func pause(ctx context.Context, n int) error { return jet.Pause(ctx, n) }
