package pgstore

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/internal/wait"
)

// Store is a store.Store with store.Events and store.Clock. Open one with [Open].
type Store struct {
	cfg Config
	// sql has the statements, with the schema.
	sql  statements
	pool *pgxpool.Pool
	hub  *wait.Hub
	// tx is the caller's transaction, of a store that Within has returned. Such a store has cfg, sql and hub besides.
	tx pgx.Tx
	// groups has the batches that are to be applied, notices the topics to notify.
	groups  *groups
	notices notices
	stop    context.CancelFunc
	work    sync.WaitGroup
}

var (
	_ store.Store  = (*Store)(nil)
	_ store.Events = (*Store)(nil)
	_ store.Clock  = (*Store)(nil)
)

// Open connects, creates or migrates the schema, and begins to receive notifications.
func Open(ctx context.Context, cfg Config) (*Store, error) {
	cfg = cfg.withDefaults()
	if err := cfg.validate(); err != nil {
		return nil, err
	}
	pc, err := cfg.pool()
	if err != nil {
		return nil, err
	}
	s := &Store{cfg: cfg, sql: newStatements(cfg.Schema), hub: &wait.Hub{}, groups: newGroups(), notices: notices{topics: map[string]bool{}}}
	limited, cancel := s.limit(ctx)
	defer cancel()
	if err := s.open(limited, pc); err != nil {
		return nil, s.failed(limited, "open schema "+cfg.Schema, err)
	}
	return s, nil
}

func (s *Store) open(ctx context.Context, pc *pgxpool.Config) error {
	pooler, err := s.probe(ctx, pc)
	if err != nil {
		return err
	}
	if s.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return err
	}
	if err = s.migrate(ctx); err == nil {
		err = s.receive(ctx, pooler)
	}
	if err != nil {
		s.pool.Close()
	}
	return err
}

// probe connects once and reports whether there is a pooler between: then the process of the server is another one than the connection has
// named. It changes the way to connect accordingly, and warns of a server that loses acknowledged batches when its machine fails.
func (s *Store) probe(ctx context.Context, pc *pgxpool.Config) (pooler bool, err error) {
	conn, err := pgx.ConnectConfig(ctx, pc.ConnConfig.Copy())
	if pg := (*pgconn.PgError)(nil); errors.As(err, &pg) && pg.Code == "08P01" && strings.Contains(pg.Message, "startup parameter") {
		s.cfg.pooled(pc)
		conn, err = pgx.ConnectConfig(ctx, pc.ConnConfig.Copy())
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = conn.Close(ctx) }() // it has served its purpose
	var process uint32
	var version int
	var fsync, pages string
	const sql = `SELECT pg_backend_pid(), current_setting('server_version_num')::int,
		current_setting('fsync'), current_setting('full_page_writes')`
	if err := conn.QueryRow(ctx, sql, pgx.QueryExecModeSimpleProtocol).Scan(&process, &version, &fsync, &pages); err != nil {
		return false, err
	}
	if version < 130000 {
		return false, fmt.Errorf("PostgreSQL %d is too old: version 13 is needed", version/10000)
	}
	if fsync == "off" || pages == "off" {
		s.cfg.Logger.WarnContext(ctx, "pgstore_server_not_durable", "fsync", fsync, "full_page_writes", pages)
	}
	if process != conn.PgConn().PID() {
		s.cfg.pooled(pc)
		return true, nil
	}
	return false, nil
}

// Close waits for calls in progress and closes the connections. Watches receive nothing more. Closing again does nothing.
func (s *Store) Close(ctx context.Context) error {
	s.stop()
	s.notices.close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.work.Wait()
		s.pool.Close()
	}()
	select {
	case <-done:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("pgstore: close: %w", context.Cause(ctx))
	}
}

// Health reports whether the server answers and has the tables.
func (s *Store) Health(ctx context.Context) error {
	var version int
	return s.read(ctx, "health", func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, s.sql.version).Scan(&version)
	})
}

// Time implements store.Clock: the server's clock.
func (s *Store) Time(ctx context.Context) (now time.Time, err error) {
	err = s.read(ctx, "time", func(ctx context.Context, c *pgx.Conn) error {
		return c.QueryRow(ctx, `SELECT clock_timestamp()`).Scan(&now)
	})
	return now, err
}
