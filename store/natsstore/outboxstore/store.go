package outboxstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// DefaultMaxBytes is that of [Config].
const DefaultMaxBytes = 1 << 30

// Config bounds a [Store]. Zero fields mean their defaults.
type Config struct {
	// MaxBytes is about how many bytes of entries and records may be live, which are in memory too.
	MaxBytes int64
}

// Store is an outbox.Store in a stream.
type Store struct {
	cfg    Config
	link   *jet.Link
	stream *jet.Stream
	names  names

	mu      sync.Mutex
	threads map[string]*thread
	size    int64 // of all threads
}

var _ outbox.Store = (*Store)(nil)

// New opens the outbox beside a mailbox, makes its stream if it is not there, with as many replicas as the mailbox was opened
// with, and reads what is live. It warns about a stream that the loss of a server loses.
func New(ctx context.Context, s *natsstore.Store, cfg Config) (*Store, error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultMaxBytes)
	if cfg.MaxBytes < 0 {
		return nil, errors.New("outboxstore: Config.MaxBytes is negative")
	}
	link := s.Link()
	out := &Store{cfg: cfg, link: link, names: names{root: link.Name + "-outbox"}, threads: map[string]*thread{}}
	var err error
	out.stream, err = link.Open(ctx, "the outbox", jetstream.StreamConfig{Name: out.names.root, Subjects: []string{out.names.all()}})
	if err == nil {
		err = out.load(ctx)
	}
	if err != nil {
		return nil, fmt.Errorf("outboxstore: %w", err)
	}
	return out, nil
}

// maxChange bounds one operation, in bytes.
const maxChange = 16 << 20

// Append implements outbox.Store.
func (s *Store) Append(ctx context.Context, c outbox.Change) (uint64, error) {
	o := op{Task: []byte(c.Task), Data: c.Data, AtMS: millis(c.At), Key: []byte(c.Key)}
	if c.Task != "" {
		o.Record = c.Record
	}
	if n := o.size(); n > maxChange {
		return 0, wrap(c.Thread, fmt.Errorf("%w: %d bytes, at most %d are allowed", outbox.ErrTooLarge, n, maxChange))
	}
	seq, err := s.submit(ctx, c.Thread, o)
	return seq, wrap(c.Thread, err)
}

// Remove implements outbox.Store.
func (s *Store) Remove(ctx context.Context, thread string, seqs ...uint64) error {
	_, err := s.submit(ctx, thread, op{Remove: seqs})
	return wrap(thread, err)
}

// Forget implements outbox.Store.
func (s *Store) Forget(ctx context.Context, thread string, tasks ...string) error {
	o := op{Forget: make([][]byte, 0, len(tasks))}
	for _, task := range tasks {
		o.Forget = append(o.Forget, []byte(task))
	}
	_, err := s.submit(ctx, thread, o)
	return wrap(thread, err)
}

// Pending implements outbox.Store.
func (s *Store) Pending(_ context.Context, thread string, after uint64, limit int) ([]outbox.Entry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.threads[thread]; t != nil {
		return t.state.pending(after, limit), nil
	}
	return nil, nil
}

// Threads implements outbox.Store.
func (s *Store) Threads(context.Context) (list []string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for name, t := range s.threads {
		if len(t.state.entries)+len(t.state.records) > 0 {
			list = append(list, name)
		}
	}
	slices.Sort(list)
	return list, nil
}

// Records implements outbox.Store.
func (s *Store) Records(_ context.Context, thread string) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if t := s.threads[thread]; t != nil {
		return maps.Clone(t.state.records), nil
	}
	return map[string][]byte{}, nil
}

func wrap(thread string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("outboxstore: thread %.80q: %w", thread, err)
}
