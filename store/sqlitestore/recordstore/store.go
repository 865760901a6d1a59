package recordstore

import (
	"context"
	"embed"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/internal/engine"
)

// CallTime bounds how long a call waits for other processes.
const CallTime = 5 * time.Second

//go:embed schema/*.sql
var scripts embed.FS

var errHeld = fmt.Errorf("another process holds the file for more than %s; end that one, or wait for it", CallTime)

// Store is a record.Store in a file.
type Store struct {
	file *engine.File
	// base is what the time of a call hangs on: calls have no context of their own.
	base context.Context //nolint:containedctx // see there
	cfg  record.Config
	// keeper knows what was started.
	keeper *record.Keeper
}

var _ record.Store = (*Store)(nil)

// New brings the tables of records in the store's file to the current version, and removes the oldest
// records beyond Config.Keep.
func New(ctx context.Context, s *sqlitestore.Store, cfg record.Config) (*Store, error) {
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
func Look(ctx context.Context, s *sqlitestore.Store) (*Store, error) {
	out, err := open(ctx, s, record.Config{})
	if err != nil {
		return nil, fmt.Errorf("recordstore: %w", err)
	}
	return out, nil
}

func open(ctx context.Context, s *sqlitestore.Store, cfg record.Config) (*Store, error) {
	cfg, err := cfg.Checked()
	if err != nil {
		return nil, err
	}
	schema, err := engine.SchemaOf("record", scripts)
	if err == nil {
		err = s.File().Migrate(ctx, schema)
	}
	out := &Store{file: s.File(), base: context.WithoutCancel(ctx), cfg: cfg}
	out.keeper = record.NewKeeper("recordstore", cfg, out.write)
	return out, err
}

// Start implements record.Store.
func (s *Store) Start(b record.Start) error { return s.keeper.Start(b) } //nolint:wrapcheck // it names the run

// Add implements record.Store.
func (s *Store) Add(run string, e record.Entry) error { return s.keeper.Add(run, e) } //nolint:wrapcheck // as above

// End implements record.Store.
func (s *Store) End(run string, e record.End) error { return s.keeper.End(run, e) } //nolint:wrapcheck // as above

// Close implements record.Store. The file stays open.
func (s *Store) Close() error { return s.keeper.Close() } //nolint:wrapcheck // as above

// pruned is how many records are removed at a time, so that others get their turn.
const pruned = 20

func (s *Store) prune(ctx context.Context) error {
	for {
		var old []int64
		err := s.file.Write(ctx, func(c *engine.Conn) error {
			err := c.Query(func(r *engine.Row) { old = append(old, r.Int()) },
				"SELECT number FROM record_run ORDER BY written DESC LIMIT ? OFFSET ?", pruned, s.cfg.Keep)
			for _, run := range old {
				if err == nil {
					_, err = c.Exec("DELETE FROM record_line WHERE run = ?", run)
				}
				if err == nil {
					_, err = c.Exec("DELETE FROM record_run WHERE number = ?", run)
				}
			}
			return err
		})
		if err != nil || len(old) < pruned {
			return err
		}
	}
}

// call runs one call, in its time.
func (s *Store) call(run func(context.Context, func(*engine.Conn) error) error, do func(*engine.Conn) error) error {
	if err := s.keeper.Open(); err != nil {
		return err //nolint:wrapcheck // the callers do
	}
	ctx, cancel := context.WithTimeoutCause(s.base, CallTime, errHeld)
	defer cancel()
	return run(ctx, do)
}
