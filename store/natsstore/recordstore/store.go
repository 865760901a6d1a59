package recordstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

var errClosed = errors.New("the store is closed")

// Store is a record.Store in a stream.
type Store struct {
	cfg    record.Config
	link   *jet.Link
	stream *jet.Stream
	names  names
	// base is what the time of a call hangs on: calls have no context of their own.
	base context.Context //nolint:containedctx // see there

	mu      sync.Mutex
	closed  bool
	started map[string]*run
}

var _ record.Store = (*Store)(nil)

// New opens the records beside a mailbox, and removes the oldest beyond Config.Keep. It makes their stream if it is not there, with as
// many replicas as the mailbox was opened with, and warns about one that the loss of a server loses.
func New(ctx context.Context, s *natsstore.Store, cfg record.Config) (*Store, error) {
	out, err := open(ctx, s, cfg)
	if err == nil {
		err = out.prune(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("recordstore: %w", err)
	}
	return out, nil
}

// Look is like [New] and removes nothing: for whoever only reads.
func Look(ctx context.Context, s *natsstore.Store) (*Store, error) {
	out, err := open(ctx, s, record.Config{})
	if err != nil {
		return nil, fmt.Errorf("recordstore: %w", err)
	}
	return out, nil
}

func open(ctx context.Context, s *natsstore.Store, cfg record.Config) (*Store, error) {
	cfg, err := cfg.Checked()
	if err != nil {
		return nil, err
	}
	link := s.Link()
	out := &Store{cfg: cfg, link: link, names: names{root: link.Name + "-records"}, base: context.WithoutCancel(ctx), started: map[string]*run{}}
	out.stream, err = link.Open(ctx, "the records", jetstream.StreamConfig{Name: out.names.root, Subjects: []string{out.names.all()}})
	return out, err
}

// Close implements record.Store. The connection stays open.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.closed = true
	clear(s.started)
	return nil
}

// prune removes the oldest records, as they are for certain. One that is gone on with at this moment begins anew.
func (s *Store) prune(ctx context.Context) error {
	if err := s.sure(ctx); err != nil {
		return err
	}
	runs, err := s.runs(ctx)
	if err != nil {
		return err
	}
	for _, old := range runs[min(s.cfg.Keep, len(runs)):] {
		err := s.stream.Ask(ctx, func(ctx context.Context) error {
			return s.stream.Purge(ctx, jetstream.WithPurgeSubject(s.names.run(old.id)+".>"), jetstream.WithPurgeSequence(old.last+1))
		})
		if err != nil {
			return fmt.Errorf("run %s: %w", old.id, err)
		}
	}
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

func wrap(run string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("recordstore: run %.140q: %w", run, err)
}

// names makes subjects.
type names struct{ root string }

func (n names) all() string { return n.root + ".>" }

func (n names) records() string { return n.root + ".*.l" }

// quorum is a subject that has no records.
func (n names) quorum() string { return n.root + ".q" }

func (n names) run(id string) string { return n.root + "." + jet.Token(id) }

func (n names) record(id string) string { return n.run(id) + ".l" }

func (n names) piece(id string) func() *nats.Msg {
	return func() *nats.Msg { return nats.NewMsg(n.run(id) + ".p." + uuid.NewString()) }
}

// id is the run that a subject is about.
func (n names) id(subject string) (string, bool) {
	token, _, _ := strings.Cut(strings.TrimPrefix(subject, n.root+"."), ".")
	return jet.Untoken(token)
}
