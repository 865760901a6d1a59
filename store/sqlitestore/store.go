package sqlitestore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

//go:embed schema/*.sql
var scripts embed.FS

// Config opens a [Store].
type Config struct {
	// Path of the file. It is made when it is not there, for its owner alone; its folder
	// must be. Required.
	Path string
	// Readers is how many may read at once, 4 when zero. Others wait.
	Readers int
	// Existing opens only what is there: nothing is made or migrated, and a file or tables that are not there are an fs.ErrNotExist. It is
	// for programs that read.
	Existing bool
}

// Store is a mailbox.Store in a file, with mailbox.Live and mailbox.EventLog.
type Store struct {
	file *engine.File
	live lines
	// cache is the writer's.
	cache cache
	// added rings when this process has added events.
	added bell
}

var (
	_ mailbox.Store = (*Store)(nil)
	_ mailbox.Clock = (*Store)(nil)
)

// Open opens the file and brings its tables to the current version.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	schema, err := engine.SchemaOf("mailbox", scripts)
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: %w", err)
	}
	file, err := engine.Open(ctx, engine.Config{Path: cfg.Path, Readers: cfg.Readers, Existing: cfg.Existing})
	if err != nil {
		return nil, fmt.Errorf("sqlitestore: %w", err)
	}
	if err := file.Migrate(ctx, schema); err != nil {
		return nil, fmt.Errorf("sqlitestore: %w", errors.Join(err, file.Close(ctx)))
	}
	return &Store{file: file, live: lines{open: map[mailbox.Target]*line{}}}, nil
}

// File returns the file, for the other packages that have tables in it.
func (s *Store) File() *engine.File { return s.file }

// Close waits until what was asked for is written, and closes the file. When ctx is done before, what
// still waits for another process fails. Closing again waits again.
func (s *Store) Close(ctx context.Context) error {
	s.live.hangUp()
	if err := s.file.Close(ctx); err != nil {
		return fmt.Errorf("sqlitestore: close: %w", err)
	}
	return nil
}

// Update implements mailbox.Store.
func (s *Store) Update(ctx context.Context, thread string, need mailbox.Need, decide func(mailbox.State) (mailbox.Change, error)) error {
	err := s.file.Write(ctx, func(c *engine.Conn) error {
		v := newView(c, thread)
		v.cache = s.cache.at(c.Epoch())
		state, err := v.load(need)
		if err != nil {
			return err
		}
		change, err := decide(state)
		if err != nil || change.Head == nil {
			return err
		}
		return v.apply(change)
	})
	return wrap("thread", thread, err)
}

// Load implements mailbox.Store.
func (s *Store) Load(ctx context.Context, thread string, need mailbox.Need) (state mailbox.State, err error) {
	err = s.file.Read(ctx, func(c *engine.Conn) (err error) {
		state, err = newView(c, thread).load(need)
		return err
	})
	return state, wrap("thread", thread, err)
}

// Time implements mailbox.Clock: all processes that share the file are on one machine, and this is its clock.
func (*Store) Time(context.Context) (time.Time, error) { return time.Now(), nil }

// Find implements mailbox.Store.
func (s *Store) Find(ctx context.Context, kind mailbox.Kind, id string) (thread string, found bool, err error) {
	text := "SELECT thread FROM dispatch WHERE id = ?"
	if kind == mailbox.KindRun {
		text = "SELECT thread FROM run WHERE id = ?"
	}
	err = s.file.Read(ctx, func(c *engine.Conn) error {
		found = false
		return c.Query(func(r *engine.Row) { thread, found = r.Text(), true }, text, id)
	})
	return thread, found, wrap(string(kind), id, err)
}

func wrap(what, id string, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("sqlitestore: %s %.80q: %w", what, id, err)
}
