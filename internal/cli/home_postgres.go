package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/pgstore"
	"github.com/mortise-dev/mortise/store/pgstore/outboxstore"
	"github.com/mortise-dev/mortise/store/pgstore/recordstore"
	"github.com/mortise-dev/mortise/store/pgstore/sessionstore"
)

// postgresHome is a schema of PostgreSQL.
type postgresHome struct{ mailbox *pgstore.Store }

// connectTimeout is how long to wait for a connection, in seconds, if nothing else says so.
const connectTimeout = "10"

// postgresConfig reads a URL as in postgres://USER@HOST/DATABASE?sslmode=verify-full&schema=NAME. Its errors do not have it, since it may
// have a password.
func postgresConfig(name string) (cfg pgstore.Config, err error) {
	server, query, _ := strings.Cut(name, "?")
	options, err := url.ParseQuery(query)
	if err != nil {
		return cfg, errors.New("what is behind the ? is not of the form sslmode=verify-full&schema=NAME; special characters of a password are written as %XX")
	}
	schemas := options["schema"]
	if len(schemas) > 1 {
		return cfg, fmt.Errorf("%d schemas are named; name one", len(schemas))
	}
	options.Del("schema")
	if !options.Has("connect_timeout") && os.Getenv("PGCONNECT_TIMEOUT") == "" {
		options.Set("connect_timeout", connectTimeout)
	}
	cfg = pgstore.Config{URL: server + "?" + options.Encode(), Conns: 4}
	if len(schemas) == 1 {
		cfg.Schema = schemas[0]
	}
	return cfg, nil
}

func openPostgresHome(ctx context.Context, name string, logger *slog.Logger, existing bool) (drawers, error) {
	cfg, err := postgresConfig(name)
	if err != nil {
		return nil, err
	}
	cfg.Logger, cfg.Existing = logger, existing
	store, err := pgstore.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &postgresHome{store}, nil
}

func (h *postgresHome) sessions(ctx context.Context) (session.Store, error) {
	return sessionstore.New(ctx, h.mailbox)
}

func (h *postgresHome) records(ctx context.Context, cfg record.Config) (record.Store, error) {
	return recordstore.New(ctx, h.mailbox, cfg)
}

func (h *postgresHome) look(ctx context.Context) (record.Store, error) {
	return recordstore.Look(ctx, h.mailbox)
}

func (h *postgresHome) outbox(ctx context.Context, folder string) (outbox.Store, io.Closer, error) {
	lock, err := lockOutbox(folder)
	if err != nil {
		return nil, nil, err
	}
	store, err := outboxstore.New(ctx, h.mailbox)
	return store, lock, err
}

func (h *postgresHome) shut(ctx context.Context) error { return h.mailbox.Close(ctx) }

func (h *postgresHome) threads() mailbox.Store { return h.mailbox }
