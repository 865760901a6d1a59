package checkcmd

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"github.com/mortise-dev/mortise/internal/cli/check"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// Offsets of clocks that are worth a warning, and that break leases.
const (
	worthOffset  = time.Second
	brokenOffset = 15 * time.Second
)

// checkStore opens the store without making anything.
func checkStore(ctx context.Context, c *program.Setup) check.Finding {
	if c.Store == "" {
		return check.Warned("name one with store, or with --store", "there is none: runs and threads are lost when the process ends")
	}
	place := config.Located(c.Store)
	h, err := c.Links.Open(ctx, c.Store, slog.New(slog.DiscardHandler), true)
	var counts map[mailbox.Status]int
	if err == nil {
		counts, err = dispatches(ctx, h)
	}
	if errors.Is(err, fs.ErrNotExist) {
		_ = h.Close(ctx)
		if folder, missing := missingFolder(c.Store); missing {
			return check.Failed("make it, or name another file", fmt.Errorf("%s: the folder %s does not exist, and mortise serve does not make it", place, folder))
		}
		if config.IsURL(c.Store) {
			return check.Fine("%s has nothing of mortise yet; mortise serve makes what it needs", place)
		}
		return check.Fine("%s does not exist yet; mortise serve makes it", place)
	}
	if err != nil {
		_ = h.Close(ctx)
		return check.Failed("see that the server runs, that the name and the credentials are right, and that this mortise is not older than the store", err)
	}
	out := check.Fine("%s, %d queued, %d dead letters", place, counts[mailbox.Queued], counts[mailbox.DeadLetter])
	if clock, ok := h.Store.(store.Clock); ok {
		out = checkClock(ctx, clock, out)
	}
	if h.Path != "" && out.State == check.OK {
		out = checkLock(c, out)
	}
	if err := h.Close(ctx); err != nil {
		return check.Failed("", err)
	}
	return out
}

// missingFolder is that of a file, and reports whether it does not exist.
func missingFolder(name string) (string, bool) {
	folder := filepath.Dir(name)
	_, err := os.Stat(folder)
	return folder, !config.IsURL(name) && errors.Is(err, fs.ErrNotExist)
}

// dispatches counts what the mailbox of the store has.
func dispatches(ctx context.Context, h *program.Home) (map[mailbox.Status]int, error) {
	box, err := mailbox.New(ctx, mailbox.Config{Store: h.Store})
	if err != nil {
		return nil, err
	}
	return box.Count(ctx)
}

// checkClock compares the clocks of the store and of this machine.
func checkClock(ctx context.Context, clock store.Clock, ok check.Finding) check.Finding {
	before := time.Now()
	there, err := clock.Time(ctx)
	if err != nil {
		return check.Failed("", fmt.Errorf("clock: %w", err))
	}
	after := time.Now()
	offset := there.Sub(before.Add(after.Sub(before) / 2)).Round(time.Millisecond)
	switch size := offset.Abs(); {
	case size > brokenOffset:
		return check.Failed("set the clocks by NTP: leases of runs are compared by them", fmt.Errorf("the clock of the store is %s off", offset))
	case size > worthOffset:
		return check.Warned("set the clocks by NTP", "the clock of the store is %s off", offset)
	}
	ok.Detail += fmt.Sprintf(", clock %s off", offset)
	return ok
}

// checkLock reports another process that uses the inbox of a SQLite file.
func checkLock(c *program.Setup, ok check.Finding) check.Finding {
	held, err := program.HoldFile(c.Store)
	if errors.Is(err, program.ErrLocked) {
		return check.Failed("end the other process, or name another file", errors.New("another process uses the file"))
	}
	if err == nil {
		err = held.Close()
	}
	if err != nil {
		return check.Failed("", err)
	}
	return ok
}

// checkFolders sees whether the folders that serve writes to can be written to.
func checkFolders(c *program.Setup) []check.Probe {
	folders := map[string]string{}
	keys := []string{"cache_dir"}
	folders["cache_dir"], _ = config.CacheDir(c.Config) // resolve has said so
	if c.Tasks.Dir != "" {
		keys = append(keys, "tasks.dir")
		folders["tasks.dir"] = c.Path(c.Tasks.Dir)
	}
	if c.Store != "" && !config.IsURL(c.Store) {
		keys = append(keys, "store folder")
		folders["store folder"] = filepath.Dir(c.Store)
		if _, missing := missingFolder(c.Store); missing {
			keys = keys[:len(keys)-1] // the check of the store reports it
		}
	}
	var out []check.Probe
	for _, key := range keys {
		out = append(out, check.Probe{Name: key, Do: func(context.Context) check.Finding { return checkFolder(folders[key]) }})
	}
	return out
}

// checkFolder writes a file into a folder, or the nearest one above it that exists, and removes it.
func checkFolder(folder string) check.Finding {
	folder, err := filepath.Abs(folder)
	if err != nil {
		return check.Failed("", err)
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
		return check.Failed("give the user of this process the folder, or name another one", fmt.Errorf("%s cannot be written to: %w", at, err))
	}
	if at != folder {
		return check.Fine("%s does not exist yet and can be made", folder)
	}
	return check.Fine("%s", folder)
}
