package natsstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/natsstore/internal/jet"
)

// Store is a mailbox.Store with mailbox.Live, mailbox.Signals and mailbox.EventLog. Make one with [Open].
type Store struct {
	cfg    Config
	id     string
	names  names
	nc     *nats.Conn
	link   *jet.Link
	stream *jet.Stream
	mirror *mirror
	lines  lines
	cache  *cache
	shelf  *shelf
	turns  turns
	events eventLog

	// trash takes records that nobody refers to any more.
	trash chan []ref
	// sweeping is held by who sweeps, and swept is how far it has come.
	sweeping sync.Mutex
	swept    uint64

	// looks counts what is looked at of queues, for tests.
	looks *int

	consumer  sync.Mutex
	signals   jetstream.Consumer
	stop      context.CancelFunc
	work      sync.WaitGroup
	closeOnce sync.Once
}

var (
	_ mailbox.Store   = (*Store)(nil)
	_ mailbox.Live    = (*Store)(nil)
	_ mailbox.Signals = (*Store)(nil)
	_ mailbox.Clock   = (*Store)(nil)
)

// Open connects, makes the stream if it is not there, and reads all heads. It warns about servers that may lose what
// they acknowledge.
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
		cfg: cfg, id: uuid.NewString(), names: names{root: cfg.Name}, nc: nc, mirror: newMirror(), trash: make(chan []ref, trashSize),
		lines: lines{open: map[mailbox.Target]*line{}}, cache: newCache(cfg.Memory / 2), shelf: newShelf(cfg.Memory / 2), turns: turns{of: map[string]*turn{}},
		events: eventLog{tails: map[string]*tail{}, next: map[place]uint64{}},
	}
	if err := s.start(ctx); err != nil {
		nc.Close()
		return nil, redact(cfg.URL, err)
	}
	return s, nil
}

func (s *Store) start(ctx context.Context) (err error) {
	js, err := jetstream.New(s.nc, jetstream.WithDefaultTimeout(s.cfg.Wait), jetstream.WithPublishAsyncTimeout(s.cfg.Wait))
	if err != nil {
		return fmt.Errorf("natsstore: %w", err)
	}
	s.link = &jet.Link{JS: js, Name: s.cfg.Name, Replicas: s.cfg.Replicas, Asked: s.cfg.Replicas, Existing: s.cfg.Existing, Wait: s.cfg.Wait, Patience: s.cfg.Patience, Logger: s.cfg.Logger, Warnings: s.cfg.warnings}
	if err := s.link.Watch(s.nc); err != nil {
		return err
	}
	if s.stream, err = s.link.Open(ctx, "the mailbox", s.wanted()); err != nil {
		return err
	}
	s.link.Replicas = cmp.Or(s.link.Replicas, s.stream.CachedInfo().Config.Replicas)
	s.checkServers(ctx)
	if !s.cfg.Existing {
		s.setAlarm(ctx)
	}
	base, stop := context.WithCancel(context.WithoutCancel(ctx))
	s.stop = stop
	s.work.Go(func() { s.sweep(base) })
	if !s.cfg.Existing {
		s.work.Go(func() { s.sweepAll(base) })
	}
	if err := s.follow(ctx, base); err != nil {
		stop()
		s.work.Wait()
		return err
	}
	return nil
}

// Time implements mailbox.Clock: it is that of the server which leads the stream.
func (s *Store) Time(ctx context.Context) (now time.Time, err error) {
	err = s.stream.Ask(ctx, func(ctx context.Context) error {
		info, err := s.stream.Info(ctx)
		if err == nil {
			now = info.TimeStamp
		}
		return err
	})
	if err == nil && now.IsZero() {
		err = errors.New("the server is too old to tell")
	}
	if err != nil {
		return time.Time{}, fmt.Errorf("natsstore: time of the servers: %w", err)
	}
	return now, nil
}

// Link is for what is kept beside a mailbox: outboxes, sessions, records.
func (s *Store) Link() *jet.Link { return s.link }

// Close ends the connection and waits until all has ended. Calls under way fail. Closing again does nothing.
func (s *Store) Close(context.Context) error {
	s.closeOnce.Do(func() {
		s.stop()
		s.work.Wait()
		s.nc.Close()
		s.mirror.stop()
	})
	return nil
}

const trashSize = 1024

// discard drops records some time.
func (s *Store) discard(list []ref) {
	if len(list) == 0 {
		return
	}
	select {
	case s.trash <- list:
	default: // space is lost, and nothing else
	}
}

// sweep drops what was discarded.
func (s *Store) sweep(ctx context.Context) {
	for {
		select {
		case list := <-s.trash:
			for _, r := range list {
				s.drop(ctx, r)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (s *Store) drop(ctx context.Context, r ref) {
	for _, seq := range append(r.Parts, r.Seq) {
		once, cancel := context.WithTimeout(ctx, s.cfg.Wait)
		err := s.stream.DeleteMsg(once, seq)
		cancel()
		if err != nil && ctx.Err() == nil && !errors.Is(err, jetstream.ErrMsgNotFound) && !errors.Is(err, jetstream.ErrMsgDeleteUnsuccessful) {
			s.cfg.Logger.DebugContext(ctx, "natsstore_record_not_dropped", "stream", s.cfg.Name, "record", seq, "error", err)
		}
	}
}
