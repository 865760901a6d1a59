package pgstore

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"strconv"
	"strings"
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
)

// Config opens a [Store]. Zero fields mean their defaults.
type Config struct {
	// URL is a PostgreSQL URL, or a string of keywords and values. Required. The environment (PGHOST, PGPASSWORD) and the password file
	// complete it, as with every client of PostgreSQL. Across a network use sslmode=verify-full.
	URL string
	// Schema has the tables: lower-case letters, digits and underscores. Stores in different schemas share nothing.
	Schema string
	// Existing opens only what is there: nothing is created or migrated, and a schema or tables that do not exist are an fs.ErrNotExist.
	Existing bool
	// Conns is how many connections the pool may have. One more listens.
	Conns int
	// StatementTimeout bounds each statement, waiting for locks and connections included. IdleTimeout is after which time the server ends
	// a transaction whose process has stopped.
	StatementTimeout, IdleTimeout time.Duration
	// Logger gets what fails in the background; nil discards it.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	c.Schema = cmp.Or(c.Schema, DefaultSchema)
	c.Conns = cmp.Or(c.Conns, DefaultConns)
	c.StatementTimeout = cmp.Or(c.StatementTimeout, DefaultStatementTimeout)
	c.IdleTimeout = cmp.Or(c.IdleTimeout, DefaultIdleTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	return c
}

func (c Config) validate() error {
	switch {
	case c.URL == "":
		return errors.New("pgstore: Config.URL is empty; give a URL such as postgres://user@host/database")
	case !regexp.MustCompile(`^[a-z_][a-z0-9_]{0,39}$`).MatchString(c.Schema):
		return fmt.Errorf("pgstore: Config.Schema %.80q: use lower-case letters, digits and underscores, at most 40", c.Schema)
	case c.Conns < 1:
		return errors.New("pgstore: Config.Conns is negative")
	case c.StatementTimeout < time.Millisecond || c.IdleTimeout < time.Millisecond:
		return errors.New("pgstore: Config.StatementTimeout and IdleTimeout are at least a millisecond")
	}
	return nil
}

// pool returns how to connect. The cause of a parse error is left out: it can quote the password.
func (c Config) pool() (*pgxpool.Config, error) {
	p, err := pgxpool.ParseConfig(c.URL)
	if err != nil {
		return nil, errors.New("pgstore: Config.URL: not a PostgreSQL URL or keyword string, or its password file or certificate " +
			"cannot be read; special characters of a password are written as %XX in a URL")
	}
	p.MaxConns = int32(min(c.Conns, 1<<15)) //nolint:gosec // bounded
	p.ConnConfig.RuntimeParams["application_name"] = "mortise"
	p.ConnConfig.RuntimeParams["client_encoding"] = "UTF8"
	maps.Copy(p.ConnConfig.RuntimeParams, c.session())
	return p, nil
}

// session returns the settings of a connection that a pooler may refuse.
func (c Config) session() map[string]string {
	return map[string]string{
		"default_transaction_isolation":       "read committed",
		"statement_timeout":                   strconv.FormatInt(c.StatementTimeout.Milliseconds(), 10),
		"idle_in_transaction_session_timeout": strconv.FormatInt(c.IdleTimeout.Milliseconds(), 10),
	}
}

// pooled changes how to connect for a pooler, which assigns a session to each transaction: nothing may be prepared there. Descriptions of
// statements may be cached, as they are the client's.
func (c Config) pooled(p *pgxpool.Config) {
	for name := range c.session() {
		delete(p.ConnConfig.RuntimeParams, name)
	}
	if !strings.Contains(c.URL, "default_query_exec_mode") {
		p.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeCacheDescribe
	}
}
