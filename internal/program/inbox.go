package program

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/store"
)

// InboxStore is where notifications and records of background tasks are kept. The zero value keeps nothing.
type InboxStore struct {
	Store store.Store
	// Shared reports that other processes use the store, too.
	Shared bool
	// close releases what was opened, after all that uses it.
	close []func(ctx context.Context) error
}

// tasksFile is the store of a folder of tasks.
const tasksFile = "tasks.db"

// OpenInbox opens the store of the config, or a file in the folder of tasks if there is none. One process at a time
// uses a file; servers are for several.
func OpenInbox(ctx context.Context, cfg *Setup, logger *slog.Logger) (s InboxStore, err error) {
	dir, h := cfg.Path(cfg.Tasks.Dir), cfg.Home
	if err := refuseJournal(dir); err != nil {
		return s, err
	}
	switch {
	case h != nil && h.Path == "":
		return InboxStore{Store: h.Store, Shared: true}, nil
	case h != nil:
		s.Store = h.Store
		if err := s.lock(inboxOf(h.Path)); err != nil {
			return s, fmt.Errorf("store: %w; end that process, use its API, name another file, or use a NATS or PostgreSQL store", err)
		}
	case dir != "":
		file := filepath.Join(dir, tasksFile)
		if err := s.lock(file); err != nil {
			return s, fmt.Errorf("tasks.dir: %w; end that process, or name another folder", err)
		}
		opened, err := cfg.Links.OpenStore(ctx, file, false, logger)
		if err != nil {
			return s, errors.Join(fmt.Errorf("tasks.dir: %w", err), s.End(ctx))
		}
		s.Store, s.close = opened, append(s.close, opened.Close)
	}
	return s, nil
}

// lock takes a path for this process.
func (s *InboxStore) lock(path string) error {
	l, err := Lock(path)
	if err == nil {
		s.close = append(s.close, func(context.Context) error { return l.Close() })
	}
	return err
}

// refuseJournal refuses a folder with notifications in the format of earlier versions.
func refuseJournal(dir string) error {
	path := filepath.Join(dir, "outbox")
	if dir == "" {
		return nil
	}
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return fmt.Errorf("tasks.dir: %s is a journal of an earlier version, which this one does not read; let that version deliver what is in it, or remove the file", path)
}

// End releases what was opened, the last first.
func (s *InboxStore) End(ctx context.Context) error {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), CloseTimeout)
	defer cancel()
	var errs []error
	for i := range s.close {
		errs = append(errs, s.close[len(s.close)-1-i](closing))
	}
	s.close = nil
	return errors.Join(errs...)
}
