package sessionstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

var errClosed = errors.New("the store is closed")

// Store is a session.Store in a stream.
type Store struct {
	stream *jet.Stream
	link   *jet.Link
	names  names
	// base is what the time of a call hangs on: calls have no context of their own.
	base context.Context //nolint:containedctx // see there

	mu     sync.Mutex
	closed bool
	lanes  map[string]*lane
	// long are threads whose state was too long for one message when it was last seen.
	long map[string]bool
}

var _ session.Store = (*Store)(nil)

// New opens the sessions beside a mailbox, and makes their stream if it is not there, with as many replicas as the mailbox was opened
// with. It warns about a stream that the loss of a server loses.
func New(ctx context.Context, s *natsstore.Store) (*Store, error) {
	link := s.Link()
	out := &Store{
		link: link, names: names{root: link.Name + "-sessions"}, base: context.WithoutCancel(ctx), lanes: map[string]*lane{}, long: map[string]bool{},
	}
	var err error
	out.stream, err = link.Open(ctx, "the sessions", jetstream.StreamConfig{
		Name: out.names.root, Subjects: []string{out.names.all()}, MaxMsgsPerSubject: session.MaxEvents, AllowRollup: true,
	})
	if err != nil {
		return nil, fmt.Errorf("sessionstore: %w", err)
	}
	return out, nil
}

// Close implements session.Store. The connection stays open.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	return nil
}

// sure makes certain that what is read from then on is not older: a leader that is cut off does not know that there is another.
func (s *Store) sure(ctx context.Context) error { return s.stream.SureEmpty(ctx, s.names.quorum()) }

// call runs one call, in its time.
func (s *Store) call(do func(context.Context) error) error {
	s.mu.Lock()
	closed := s.closed
	s.mu.Unlock()
	if closed {
		return errClosed
	}
	ctx, cancel := context.WithTimeoutCause(s.base, s.link.Patience, jet.ErrPatience)
	defer cancel()
	return do(ctx)
}

func wrap(thread string, err error) error {
	if err == nil || errors.Is(err, compaction.ErrConflict) {
		return err
	}
	return fmt.Errorf("sessionstore: thread %.80q: %w", thread, err)
}
