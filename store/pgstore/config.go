package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
)

// Defaults of [Config].
const (
	DefaultSchema           = "mortise"
	DefaultConns            = 8
	DefaultStatementTimeout = 30 * time.Second
	DefaultIdleTimeout      = 10 * time.Second
	DefaultCoalesce         = 5 * time.Millisecond
)

// Config opens a [Store]. Zero fields mean their defaults.
type Config struct {
	// URL is a PostgreSQL URL, or a string of keywords and values. Required. Like every client
	// of PostgreSQL it is completed by the environment (PGHOST, PGPASSWORD) and the password file. Across a network say
	// sslmode=verify-full.
	URL string
	// Schema holds the tables: lower-case letters, digits and underscores. Mailboxes in different schemas know
	// nothing of each other.
	Schema string
	// Existing opens only what is there: nothing is made or migrated, and a schema or tables that are not there are an fs.ErrNotExist.
	// It is for programs that read.
	Existing bool
	// Conns is how many connections the pool may have. One more listens.
	Conns int
	// StatementTimeout bounds each statement, waiting for locks included. IdleTimeout is after
	// which time the server ends a transaction of a process that does not go on.
	StatementTimeout, IdleTimeout time.Duration
	// Coalesce is how long signals wait for more of them, after the first.
	Coalesce time.Duration
	// Logger gets what goes wrong in the background.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Schema = cmp.Or(c.Schema, DefaultSchema)
	c.Conns = cmp.Or(c.Conns, DefaultConns)
	c.StatementTimeout = cmp.Or(c.StatementTimeout, DefaultStatementTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	c.Coalesce = cmp.Or(c.Coalesce, DefaultCoalesce)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.URL == "":
		return errors.New("pgstore: Config.URL is empty; give a URL such as postgres://user@host/database")
	case !schemaName().MatchString(c.Schema):
		return fmt.Errorf("pgstore: Config.Schema %.80q: use lower-case letters, digits and underscores, at most 40", c.Schema)
	case c.Conns < 1:
		return errors.New("pgstore: Config.Conns is negative")
	case c.StatementTimeout < time.Millisecond || c.IdleTimeout < time.Millisecond || c.Coalesce < 0:
		return errors.New("pgstore: Config.StatementTimeout, IdleTimeout and Coalesce are at least a millisecond")
	}
	return nil
}

func schemaName() *regexp.Regexp { return regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`) }

// pool says how to connect. The cause of a parse error is left out: it can quote the password.
func (c Config) pool() (*pgxpool.Config, error) {
	p, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, errors.New("pgstore: Config.URL: not a PostgreSQL URL or keyword string, or its password file or certificate " +
			"cannot be read; special characters of a password are written as %XX in a URL")
	}
	p.MaxConns = int32(min(c.Conns, 1<<15)) //nolint:gosec // bounded
	maps.Copy(p.ConnConfig.RuntimeParams, c.session())
	p.AfterConnect = durable
	return p, nil
}

// session are the settings of a connection. Every statement is an index look-up that
// must not depend on what the planner believes about the tables today.
func (c Config) session() map[string]string {
	return map[string]string{
		"application_name":                    "mortise",
		"client_encoding":                     "UTF8",
		"default_transaction_isolation":       "read committed",
		"statement_timeout":                   strconv.FormatInt(c.StatementTimeout.Milliseconds(), 10),
		"idle_in_transaction_session_timeout": strconv.FormatInt(c.IdleTimeout.Milliseconds(), 10),
		"plan_cache_mode":                     "force_generic_plan",
		"enable_seqscan":                      "off",
		"enable_bitmapscan":                   "off",
		"jit":                                 "off",
	}
}

// durable undoes a default of the database or the role that lets commits return
// before they are on disk.
func durable(ctx context.Context, c *pgx.Conn) error {
	const sql = `SELECT set_config('synchronous_commit', 'on', false) WHERE current_setting('synchronous_commit') = 'off'`
	_, err := c.Exec(ctx, sql)
	return err
}
