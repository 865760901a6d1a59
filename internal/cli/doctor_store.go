package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// Offsets of clocks that are worth a warning, and that break leases.
const (
	worthOffset  = time.Second
	brokenOffset = 15 * time.Second
)

// checkStore opens the store without making anything.
func (c *Config) checkStore(ctx context.Context) finding {
	if c.Store == "" {
		return warned("name one with store, or with --store", "there is none: runs and threads are lost when the process ends")
	}
	place := located(c.Store)
	h, err := c.links.openStore(ctx, c.Store, slog.New(slog.DiscardHandler), true)
	var counts map[mailbox.Status]int
	if err == nil {
		counts, err = h.dispatches(ctx)
	}
	if errors.Is(err, fs.ErrNotExist) {
		_ = h.close(ctx)
		return fine("%s does not exist yet; mortise serve makes it", place)
	}
	if err != nil {
		_ = h.close(ctx)
		return failed("see that the server runs, that the name and the credentials are right, and that this mortise is not older than the store", err)
	}
	out := fine("%s, %d queued, %d dead letters", place, counts[mailbox.Queued], counts[mailbox.DeadLetter])
	if clock, ok := h.store.(store.Clock); ok {
		out = checkClock(ctx, clock, out)
	}
	if h.path != "" && out.State == checkOK {
		out = c.checkLock(out)
	}
	if err := h.close(ctx); err != nil {
		return failed("", err)
	}
	return out
}

// dispatches counts what the mailbox of the store has.
func (h *home) dispatches(ctx context.Context) (map[mailbox.Status]int, error) {
	box, err := mailbox.New(ctx, mailbox.Config{Store: h.store})
	if err != nil {
		return nil, err
	}
	return box.Count(ctx)
}

// checkClock compares the clocks of the store and of this machine.
func checkClock(ctx context.Context, clock store.Clock, ok finding) finding {
	before := time.Now()
	there, err := clock.Time(ctx)
	if err != nil {
		return failed("", fmt.Errorf("clock: %w", err))
	}
	after := time.Now()
	offset := there.Sub(before.Add(after.Sub(before) / 2)).Round(time.Millisecond)
	switch size := offset.Abs(); {
	case size > brokenOffset:
		return failed("set the clocks by NTP: leases of runs are compared by them", fmt.Errorf("the clock of the store is %s off", offset))
	case size > worthOffset:
		return warned("set the clocks by NTP", "the clock of the store is %s off", offset)
	}
	ok.Detail += fmt.Sprintf(", clock %s off", offset)
	return ok
}

// checkLock reports another process that uses the inbox of a SQLite file.
func (c *Config) checkLock(ok finding) finding {
	path := c.Store + "-inbox"
	if _, err := os.Stat(path + ".lock"); err != nil {
		return ok // nothing has used it
	}
	held, err := lock(path)
	if errors.Is(err, errLocked) {
		return failed("end the other process, or name another file", errors.New("another process uses the file"))
	}
	if err == nil {
		err = held.Close()
	}
	if err != nil {
		return failed("", err)
	}
	return ok
}

// checkFolders sees whether the folders that serve writes to can be written to.
func (c *Config) checkFolders() []check {
	folders := map[string]string{}
	keys := []string{"cache_dir"}
	folders["cache_dir"], _ = cacheDir(c) // resolve has said so
	if c.Tasks.Dir != "" {
		keys = append(keys, "tasks.dir")
		folders["tasks.dir"] = c.path(c.Tasks.Dir)
	}
	if c.Store != "" && !isURL(c.Store) {
		keys = append(keys, "store folder")
		folders["store folder"] = filepath.Dir(c.Store)
	}
	var out []check
	for _, key := range keys {
		out = append(out, check{key, func(context.Context) finding { return checkFolder(folders[key]) }})
	}
	return out
}

// checkFolder writes a file into a folder, or the nearest one above it that exists, and removes it.
func checkFolder(folder string) finding {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return failed("", err)
	}
	at := folder
	for at != filepath.Dir(at) {
		if _, err := os.Stat(at); !errors.Is(err, fs.ErrNotExist) {
			break
		}
		at = filepath.Dir(at)
	}
	f, err := os.CreateTemp(at, ".mortise-doctor-")
	if err == nil {
		err = errors.Join(f.Close(), os.Remove(f.Name()))
	}
	if err != nil {
		return failed("give the user of this process the folder, or name another one", fmt.Errorf("%s cannot be written to: %w", at, err))
	}
	if at != folder {
		return fine("%s does not exist yet and can be made", folder)
	}
	return fine("%s", folder)
}
