package pgstore

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store/pgstore/internal/tables"
)

// Store is a mailbox.Store with mailbox.Signals, mailbox.Live and mailbox.EventLog. Open one with [Open].
type Store struct {
	cfg    Config
	pool   *pgxpool.Pool
	tables *tables.Tables
	// shapes remembers statements of swiftly.
	shapes sync.Map
	wire   *wire
	// recent is what was written last.
	recent recent
}

var (
	_ mailbox.Store   = (*Store)(nil)
	_ mailbox.Signals = (*Store)(nil)
	_ mailbox.Live    = (*Store)(nil)
	_ mailbox.Clock   = (*Store)(nil)
)

// Open connects, makes or migrates the schema, and begins to listen.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	pc, err := cfg.pool()
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, pc)
	if err != nil {
		return nil, fmt.Errorf("pgstore: open: %w", err)
	}
	s := &Store{cfg: cfg, pool: pool, tables: tables.New(pool, cfg.Schema, cfg.Existing)}
	if err := s.start(ctx); err != nil {
		pool.Close()
		return nil, fmt.Errorf("pgstore: open schema %s: %w", cfg.Schema, err)
	}
	return s, nil
}

func (s *Store) start(ctx context.Context) error {
	if err := s.migrate(ctx); err != nil {
		return err
	}
	if err := s.warn(ctx); err != nil {
		return err
	}
	return s.listen(ctx)
}

// warn tells of a server that loses what it has acknowledged when its machine fails.
func (s *Store) warn(ctx context.Context) error {
	for _, setting := range []string{"fsync", "full_page_writes"} {
		var value string
		if err := s.pool.QueryRow(ctx, `SELECT current_setting($1)`, setting).Scan(&value); err != nil {
			return err
		}
		if value == "off" {
			s.cfg.Logger.WarnContext(ctx, "pgstore_server_not_durable", "setting", setting, "value", value)
		}
	}
	return nil
}

// Time implements mailbox.Clock: it is the server's.
func (s *Store) Time(ctx context.Context) (now time.Time, err error) {
	if err := s.pool.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now); err != nil {
		return time.Time{}, fmt.Errorf("pgstore: %w", err)
	}
	return now, nil
}

// Close waits for calls under way and ends the connections. Listeners hear nothing more. Closing again does nothing.
func (s *Store) Close(ctx context.Context) error {
	err := s.wire.close(ctx)
	s.pool.Close()
	return err
}
