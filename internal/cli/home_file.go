package cli

import (
	"context"
	"io"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/outbox"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/outboxstore"
	"github.com/mortise-dev/mortise/store/sqlitestore/recordstore"
	"github.com/mortise-dev/mortise/store/sqlitestore/sessionstore"
)

// fileHome is a SQLite file.
type fileHome struct {
	path string
	file *sqlitestore.Store
}

func openFileHome(ctx context.Context, path string, existing bool) (drawers, error) {
	file, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: path, Existing: existing})
	if err != nil {
		return nil, badStore(path, err)
	}
	return &fileHome{path, file}, nil
}

func (h *fileHome) sessions(ctx context.Context) (session.Store, error) {
	return sessionstore.New(ctx, h.file)
}

func (h *fileHome) records(ctx context.Context, cfg record.Config) (record.Store, error) {
	return recordstore.New(ctx, h.file, cfg)
}

func (h *fileHome) look(ctx context.Context) (record.Store, error) {
	return recordstore.Look(ctx, h.file)
}

func (h *fileHome) outbox(ctx context.Context, _ string) (outbox.Store, io.Closer, error) {
	lock, err := outbox.Lock(h.path + "-outbox")
	if err != nil {
		return nil, nil, err
	}
	store, err := outboxstore.New(ctx, h.file)
	return store, lock, err
}

func (h *fileHome) shut(ctx context.Context) error { return h.file.Close(ctx) }

func (h *fileHome) threads() mailbox.Store { return h.file }
