package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/url"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/natsstore"
	"github.com/mortise-dev/mortise/store/natsstore/outboxstore"
	"github.com/mortise-dev/mortise/store/natsstore/recordstore"
	"github.com/mortise-dev/mortise/store/natsstore/sessionstore"
)

// natsHome is streams of NATS JetStream.
type natsHome struct{ mailbox *natsstore.Store }

// natsConfig reads a URL as in nats://HOST:4222,HOST:4222/NAME?replicas=3. Its errors do not have it, since it may have credentials.
func natsConfig(name string) (cfg natsstore.Config, err error) {
	servers, query, _ := strings.Cut(name, "?")
	scheme, rest, _ := strings.Cut(servers, "://")
	hosts, stream, _ := strings.Cut(rest, "/")
	options, err := url.ParseQuery(query)
	if err != nil {
		return cfg, errors.New("what is behind the ? is not of the form replicas=3")
	}
	cfg = natsstore.Config{URL: scheme + "://" + hosts, Name: stream}
	for option, values := range options {
		if option != "replicas" {
			return cfg, fmt.Errorf("there is no option %.40q; replicas is one", option)
		}
		if cfg.Replicas, err = strconv.Atoi(values[0]); err != nil || len(values) > 1 {
			return cfg, fmt.Errorf("replicas=%.40q: it can be 1, 3 or 5", strings.Join(values, ","))
		}
	}
	if hosts == "" {
		return cfg, errors.New("no server is named, as in nats://HOST:4222/NAME")
	}
	return cfg, nil
}

func openNATSHome(ctx context.Context, name string, logger *slog.Logger, existing bool) (drawers, error) {
	cfg, err := natsConfig(name)
	if err != nil {
		return nil, err
	}
	cfg.Logger, cfg.Existing = logger, existing
	store, err := natsstore.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	return &natsHome{store}, nil
}

func (h *natsHome) sessions(ctx context.Context) (session.Store, error) {
	return sessionstore.New(ctx, h.mailbox)
}

func (h *natsHome) records(ctx context.Context, cfg record.Config) (record.Store, error) {
	return recordstore.New(ctx, h.mailbox, cfg)
}

func (h *natsHome) look(ctx context.Context) (record.Store, error) {
	return recordstore.Look(ctx, h.mailbox)
}

func (h *natsHome) outbox(ctx context.Context, folder string) (outbox.Store, io.Closer, error) {
	lock, err := lockOutbox(folder)
	if err != nil {
		return nil, nil, err
	}
	store, err := outboxstore.New(ctx, h.mailbox, outboxstore.Config{})
	return store, lock, err
}

func (h *natsHome) shut(ctx context.Context) error { return h.mailbox.Close(ctx) }

func (h *natsHome) threads() mailbox.Store { return h.mailbox }
