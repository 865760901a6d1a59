package sqlitestore

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"time"

	_ "modernc.org/sqlite" // the driver

	"github.com/mortise-dev/mortise/internal/sqlitefile"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

const defaultReaders = 4

// Config opens a [Store].
type Config struct {
	// Path of the file. Open creates a missing file, with mode 0600, but not its folder. Required.
	Path string
	// Readers is the number of concurrent reads; 4 when zero. Others wait.
	Readers int
	// Existing opens only a file that has tables of this version: Open creates and migrates nothing. A missing file or missing tables are
	// an fs.ErrNotExist. It is for programs that read.
	Existing bool
}

// Store is a store.Store in a file, with store.Events and store.Clock. Make one with [Open]. It is safe for concurrent use, and several
// stores may have the same file open, in one process or in many.
type Store struct {
	db     *sql.DB
	place  *place
	writer *writer
	hub    wait.Hub
	// polling is the goroutine that polls, which seen belongs to: the latest notification that was delivered.
	polling     sync.WaitGroup
	stopPolling context.CancelFunc
	seen        int64
	// readers has an element for each read that may run, nil where no connection was made yet. Close closes it.
	readers chan *conn
	// origin marks the notifications of this Store.
	origin int64

	once   sync.Once
	closed chan struct{}
	err    error
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Events = (*Store)(nil)
	_ store.Clock  = (*Store)(nil)
)

// Open opens the file and brings its tables to the current version. It waits for other processes until ctx is done.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	if cfg.Readers < 0 {
		return nil, errors.New("sqlitestore: config: Readers is negative")
	}
	path, err := locate(cfg.Path, cfg.Existing)
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: open: %w", err)
	}
	db, err := sql.Open("sqlite", sqlitefile.Source(path, url.Values{"mode": {"rw"}, "_pragma": {"cache_size(-16000)"}}))
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: open %s: %w", path, err)
	}
	s := &Store{
		db: db, place: &place{path: path}, hub: wait.Hub{Added: make(chan struct{}, 1)}, closed: make(chan struct{}), origin: rand.Int64(), //nolint:gosec // not a secret
		readers: make(chan *conn, cmp.Or(cfg.Readers, defaultReaders)),
	}
	for range cap(s.readers) {
		s.readers <- nil
	}
	if err := s.start(ctx, cfg.Existing); err != nil {
		return nil, fmt.Errorf("sqlitestore: open %s: %w", path, errors.Join(err, db.Close()))
	}
	return s, nil
}

// start checks the file and starts the goroutines.
func (s *Store) start(ctx context.Context, existing bool) error {
	var c *conn
	err := sqlitefile.Retry(ctx, sqlitefile.LastPause, func() (err error) {
		c, err = connect(ctx, s.db, "synchronous = FULL", "fullfsync = ON", fmt.Sprint("journal_size_limit = ", keptLog))
		return err
	})
	if err != nil {
		return err
	}
	err = c.migrate(ctx, existing)
	if err == nil {
		err = sqlitefile.Retry(ctx, sqlitefile.LastPause, func() error {
			_, err := c.row(ctx, []any{&s.seen}, "SELECT coalesce(max(id), 0) FROM notice")
			return err
		})
	}
	if err == nil {
		err = s.place.check()
	}
	if err != nil {
		return errors.Join(err, c.close())
	}
	s.writer = newWriter(c, s)
	ctx, s.stopPolling = context.WithCancel(context.WithoutCancel(ctx))
	s.polling.Go(func() { s.poll(ctx) })
	return nil
}

// Close waits until the batches that wait are written, and closes the file. When ctx is done before, batches that wait for another process
// fail with [ErrClosed]. A second call waits for the first one.
func (s *Store) Close(ctx context.Context) error {
	s.once.Do(func() {
		defer close(s.closed)
		s.err = s.writer.close(ctx)
		s.stopPolling()
		s.polling.Wait()
		for range cap(s.readers) {
			if c := <-s.readers; c != nil {
				s.err = errors.Join(s.err, c.close())
			}
		}
		close(s.readers)
		s.hub.NotifyAll() // calls that wait for events read again, and fail
		s.err = errors.Join(s.err, s.db.Close())
	})
	<-s.closed
	if s.err != nil {
		return fmt.Errorf("sqlitestore: close %s: %w", s.place.path, s.err)
	}
	return nil
}

// Health reports whether the file can be read and is where it was opened.
func (s *Store) Health(ctx context.Context) error {
	err := s.read(ctx, func(c *conn) error {
		if err := s.place.check(); err != nil {
			return err
		}
		_, err := c.counter(ctx)
		return err
	})
	return wrap("file", s.place.path, err)
}

// counter returns the revision of the last batch.
func (c *conn) counter(ctx context.Context) (revision int64, err error) {
	found, err := c.row(ctx, []any{&revision}, "SELECT revision FROM counter")
	if err == nil && !found {
		err = errors.New("the file is damaged: the counter of revisions is missing")
	}
	return revision, err
}

// Time implements store.Clock: the processes that share the file are on one machine, and this is its clock.
func (*Store) Time(context.Context) (time.Time, error) { return time.Now(), nil }

// read calls do with a connection that only reads. Do may be called several times.
func (s *Store) read(ctx context.Context, do func(*conn) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var c *conn
	var open bool
	select {
	case c, open = <-s.readers:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !open {
		return ErrClosed
	}
	defer func() { s.readers <- c }()
	return sqlitefile.Retry(ctx, sqlitefile.LastPause, func() (err error) {
		if c == nil {
			if c, err = s.reader(ctx); err != nil {
				return err
			}
		}
		return do(c)
	})
}

// reader opens a connection that only reads.
func (s *Store) reader(ctx context.Context) (*conn, error) {
	if err := s.place.check(); err != nil {
		return nil, err
	}
	return connect(ctx, s.db, "query_only = ON")
}
