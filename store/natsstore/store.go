package natsstore

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/store"
)

// Store is a store.Store with store.Events and store.Clock. Make one with [Open].
type Store struct {
	cfg     Config
	id      string
	names   names
	nc      *nats.Conn
	js      jetstream.JetStream
	stream  jetstream.Stream
	created time.Time

	mirror *mirror
	turns  turns
	events events
	jobs   jobs
	// following is done when the mirror receives nothing more. Its goroutine has synced, the server's time
	// when nothing was missing, and sweepAt, that of the next sweep.
	following       sync.WaitGroup
	synced, sweepAt time.Time
	// late receives when messages are late.
	late chan struct{}
	// eager writes a snapshot after each two operations, for tests.
	eager bool
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Events = (*Store)(nil)
	_ store.Clock  = (*Store)(nil)
)

// Open connects, makes the stream if it does not exist, and receives the state of all threads. It warns about servers that may lose
// what they acknowledge. A stream of an older version of Mortise is refused.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	nc, err := connect(cfg)
	if err != nil {
		return nil, err
	}
	s := &Store{
		cfg: cfg, id: uuid.NewString(), names: names{root: cfg.Stream}, nc: nc, mirror: newMirror(cfg.Memory),
		turns: turns{of: map[string]*turn{}}, late: make(chan struct{}),
	}
	if err := s.start(ctx); err != nil {
		return nil, errors.Join(redact(cfg.URL, err), s.Close(ctx))
	}
	return s, nil
}

func (s *Store) start(ctx context.Context) (err error) {
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.jobs.start(base, stop)
	if s.js, err = jetstream.New(s.nc, jetstream.WithDefaultTimeout(s.cfg.Wait)); err != nil {
		return fmt.Errorf("natsstore: %w", err)
	}
	if s.stream, err = s.openStream(ctx, s.wanted()); err != nil {
		return err
	}
	s.created = s.stream.CachedInfo().Created
	s.cfg.warnings.WarnContext(ctx, "natsstore_sync_unknown", "stream", s.cfg.Stream,
		"hint", "a power cut loses what was acknowledged unless the jetstream block of the servers has sync_interval: always")
	s.following.Go(func() { s.follow(base) })
	if err := s.catchUp(ctx); err != nil {
		return fmt.Errorf("natsstore: stream %q: %w", s.cfg.Stream, err)
	}
	return nil
}

// Time implements store.Clock: the clock of the server that leads the stream.
func (s *Store) Time(ctx context.Context) (now time.Time, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		info, err := s.stream.Info(ctx)
		if err == nil {
			now = info.TimeStamp
		}
		return err
	})
	if err == nil && now.IsZero() {
		err = errors.New("the server is too old to have it")
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("natsstore: time of the servers: %w", err)
	}
	return now, nil
}

// Health returns an error if the store cannot answer, as when its stream was deleted.
func (s *Store) Health(ctx context.Context) error {
	if err := s.view(func(*mirror) {}); err != nil {
		return fmt.Errorf("natsstore: %w", err)
	}
	if err := s.catchUp(ctx); err != nil {
		if ctx.Err() != nil {
			err = fmt.Errorf("no answer of %s: %w", s.cfg.URL, context.Cause(ctx))
		}
		return fmt.Errorf("natsstore: %w", redact(s.cfg.URL, err))
	}
	return nil
}

var errClosed = errors.New("natsstore: the store is closed")

// Close ends the connection and waits for all goroutines. Calls in progress fail. Closing again does nothing.
func (s *Store) Close(ctx context.Context) error {
	ctx, cancel := context.WithTimeoutCause(ctx, s.cfg.Wait, errPatience)
	defer cancel()
	err := s.jobs.close(ctx)
	s.mirror.fail(errClosed)
	s.following.Wait()
	s.nc.Close()
	return err
}

// jobs are what runs in the background.
type jobs struct {
	mu     sync.Mutex
	base   context.Context //nolint:containedctx // that of the goroutines, which close ends
	stop   context.CancelFunc
	closed bool
	wg     sync.WaitGroup
}

func (j *jobs) start(base context.Context, stop context.CancelFunc) { j.base, j.stop = base, stop }

// work runs a job in the background. It reports whether it does: not after Close.
func (s *Store) work(job func(context.Context)) bool {
	j := &s.jobs
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.closed {
		return false
	}
	j.wg.Go(func() { job(j.base) })
	return true
}

// close waits for the jobs, which are ended when ctx is done.
func (j *jobs) close(ctx context.Context) error {
	j.mu.Lock()
	j.closed = true
	j.mu.Unlock()
	done := make(chan struct{})
	go func() {
		j.wg.Wait()
		close(done)
	}()
	var err error
	select {
	case <-done:
	case <-ctx.Done():
		err = fmt.Errorf("natsstore: close: %w", context.Cause(ctx))
	}
	j.stop()
	<-done
	return err
}
