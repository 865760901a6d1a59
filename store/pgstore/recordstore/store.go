package recordstore

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/store/pgstore"
	"github.com/mortise-dev/mortise/store/pgstore/internal/tables"
)

// CallTime bounds how long a call waits for others and for the server.
const CallTime = 10 * time.Second

//go:embed schema/*.sql
var scripts embed.FS

var errTime = fmt.Errorf("the server did not answer within %s", CallTime)

// Store is a record.Store in PostgreSQL.
type Store struct {
	tables *tables.Tables
	// base is what the time of a call hangs on: calls have no context of their own.
	base context.Context //nolint:containedctx // see there
	cfg  record.Config
	// keeper knows what was started.
	keeper *record.Keeper
}

var _ record.Store = (*Store)(nil)

// New brings the tables of records in the store's schema to the current version, and removes the oldest
// records beyond Config.Keep.
func New(ctx context.Context, s *pgstore.Store, cfg record.Config) (*Store, error) {
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
func Look(ctx context.Context, s *pgstore.Store) (*Store, error) {
	out, err := open(ctx, s, record.Config{})
	if err != nil {
		return nil, fmt.Errorf("recordstore: %w", err)
	}
	return out, nil
}

func open(ctx context.Context, s *pgstore.Store, cfg record.Config) (*Store, error) {
	cfg, err := cfg.Checked()
	if err != nil {
		return nil, err
	}
	err = s.Tables().Migrate(ctx, "record_migration", scripts)
	out := &Store{tables: s.Tables(), base: context.WithoutCancel(ctx), cfg: cfg}
	out.keeper = record.NewKeeper("recordstore", cfg, out.write)
	return out, err
}

// Start implements record.Store.
func (s *Store) Start(b record.Start) error { return s.keeper.Start(b) } //nolint:wrapcheck // it names the run

// Add implements record.Store.
func (s *Store) Add(run string, e record.Entry) error { return s.keeper.Add(run, e) } //nolint:wrapcheck // as above

// End implements record.Store.
func (s *Store) End(run string, e record.End) error { return s.keeper.End(run, e) } //nolint:wrapcheck // as above

// Close implements record.Store. The connections stay open.
func (s *Store) Close() error { return s.keeper.Close() } //nolint:wrapcheck // as above

// pruned is how many records are removed at a time, so that others get their turn.
const pruned = 20

func (s *Store) prune(ctx context.Context) error {
	for {
		var gone int64
		err := s.tables.Write(ctx, func(ctx context.Context, tx tables.Tx) (err error) {
			gone, err = tx.Exec(ctx, `WITH old AS (
					DELETE FROM @.record_run WHERE number IN (SELECT number FROM @.record_run ORDER BY written DESC LIMIT $1 OFFSET $2) RETURNING number)
				DELETE FROM @.record_line WHERE run IN (SELECT number FROM old)`, pruned, s.cfg.Keep)
			return err
		})
		if err != nil || gone == 0 {
			return err
		}
	}
}

type job = func(context.Context, tables.Tx) error

// call runs one call, in its time.
func (s *Store) call(run func(context.Context, job) error, do job) error {
	if err := s.keeper.Open(); err != nil {
		return err //nolint:wrapcheck // the callers do
	}
	ctx, cancel := context.WithTimeoutCause(s.base, CallTime, errTime)
	defer cancel()
	err := run(ctx, do)
	if ctx.Err() != nil && errors.Is(err, context.DeadlineExceeded) {
		err = errTime
	}
	return err
}
