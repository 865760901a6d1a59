package storeurl

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/pgstore"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// Store is an open store. It is safe for concurrent use. The caller closes it, after everything that uses it.
type Store interface {
	store.Store
	store.Events
	store.Clock
	// Health returns why the store does not answer; nil if it does.
	Health(ctx context.Context) error
	// Close waits for what was asked for, and closes connections and files. Closing again waits again.
	Close(ctx context.Context) error
}

// Options select how to open a store.
type Options struct {
	// Existing opens only what is there: nothing is created or migrated, and what is missing is an fs.ErrNotExist.
	Existing bool
	// Logger gets what fails in the background, and warnings about servers. Nil discards them.
	Logger *slog.Logger
}

// Open opens the store of a name. Its errors have no credentials of the URL.
func Open(ctx context.Context, name string, o Options) (Store, error) {
	scheme, _, isURL := strings.Cut(name, "://")
	switch {
	case name == "":
		return nil, errors.New("the store has no name; name a SQLite file, nats://HOST:4222/STREAM, or postgres://USER@HOST/DATABASE")
	case !isURL:
		return opened(sqlitestore.Open(ctx, sqlitestore.Config{Path: name, Existing: o.Existing}))
	case scheme == "nats" || scheme == "tls":
		cfg, err := natsConfig(name)
		if err != nil {
			return nil, err
		}
		cfg.Logger, cfg.Existing = o.Logger, o.Existing
		return opened(natsstore.Open(ctx, cfg))
	case scheme == "postgres" || scheme == "postgresql":
		cfg, err := postgresConfig(name)
		if err != nil {
			return nil, err
		}
		cfg.Logger, cfg.Existing = o.Logger, o.Existing
		return opened(pgstore.Open(ctx, cfg))
	default:
		return nil, fmt.Errorf("%.20q is no kind of store; name a SQLite file, nats://HOST:4222/STREAM, or postgres://USER@HOST/DATABASE", scheme)
	}
}

// opened makes an interface of a store, and nil of none.
func opened[S Store](s S, err error) (Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

// natsConfig reads a URL as in nats://HOST:4222,HOST:4222/STREAM?replicas=3.
func natsConfig(name string) (cfg natsstore.Config, err error) {
	servers, query, _ := strings.Cut(name, "?")
	scheme, rest, _ := strings.Cut(servers, "://")
	hosts, stream, _ := strings.Cut(rest, "/")
	options, err := url.ParseQuery(query)
	if err != nil {
		return cfg, errors.New("what is behind the ? is not of the form replicas=3")
	}
	cfg = natsstore.Config{URL: scheme + "://" + hosts, Stream: stream}
	for option, values := range options {
		if option != "replicas" {
			return cfg, fmt.Errorf("there is no option %.40q; replicas is one", option)
		}
		if cfg.Replicas, err = strconv.Atoi(values[0]); err != nil || len(values) > 1 {
			return cfg, fmt.Errorf("replicas=%.40q: it can be 1, 3 or 5", strings.Join(values, ","))
		}
	}
	if hosts == "" {
		return cfg, errors.New("no server is named, as in nats://HOST:4222/STREAM")
	}
	return cfg, nil
}

// connectTimeout is how long to wait for a connection to PostgreSQL, in seconds, if nothing else says so.
const connectTimeout = "10"

// postgresConfig reads a URL as in postgres://USER@HOST/DATABASE?sslmode=verify-full&schema=NAME.
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
	cfg = pgstore.Config{URL: server + "?" + options.Encode()}
	if len(schemas) == 1 {
		cfg.Schema = schemas[0]
	}
	return cfg, nil
}
