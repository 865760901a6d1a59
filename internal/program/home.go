package program

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"strings"

	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/thread"
)

// Home is the store of a command.
type Home struct {
	// Name is the file, or the URL without credentials; Path is the file alone.
	Name, Path string
	Store      Store
}

// OpenHome opens the store of the config, and creates it if need be. Without a name there is none. The logger gets what is wrong with
// servers; nil discards it.
func (c *Setup) OpenHome(ctx context.Context, logger *slog.Logger) (*Home, error) {
	return c.Links.Open(ctx, c.Store, logger, false)
}

// Open opens the store of a file or a URL. An existing one is not created: what is missing is an fs.ErrNotExist.
func (l Links) Open(ctx context.Context, name string, logger *slog.Logger, existing bool) (*Home, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	h := &Home{Name: config.Shown(name)}
	if !config.IsURL(name) {
		h.Path = name
	}
	var err error
	if h.Store, err = l.OpenStore(ctx, name, existing, logger); err != nil {
		if h.Path != "" {
			err = badStore(name, err)
		}
		return nil, fmt.Errorf("store: %w", err)
	}
	return h, nil
}

// Close closes the store, after all that uses it.
func (h *Home) Close(ctx context.Context) error {
	if h == nil {
		return nil
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), CloseTimeout)
	defer cancel()
	return h.Store.Close(closing)
}

// Archive has the threads of a store that the user names.
type Archive struct {
	Home    *Home
	Threads *thread.Threads
	// What is the file or the store.
	What string
}

// OpenThreads opens the threads of an existing store.
func (l Links) OpenThreads(ctx context.Context, name string) (*Archive, error) {
	k := &Archive{What: "store " + config.Located(name)}
	if !config.IsURL(name) {
		k.What = "file " + name
	}
	var err error
	k.Home, err = l.Open(ctx, name, nil, true)
	if errors.Is(err, fs.ErrNotExist) && !config.IsURL(name) {
		return nil, exit.NotFound(fmt.Errorf("%s: there is no such file; name the one that mortise run --store has made", name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, exit.NotFound(fmt.Errorf("the %s holds no thread; mortise run --store makes one: %w", k.What, err))
	}
	if err != nil {
		return nil, err
	}
	k.Threads = thread.On(k.Home.Store)
	return k, nil
}

// sqliteHead is how a file of SQLite begins.
const sqliteHead = "SQLite format 3\x00"

// IsSQLite reports whether a path is that of a SQLite file.
func IsSQLite(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return false, err
	}
	f, err := os.Open(path)
	if err != nil {
		return false, err
	}
	head := make([]byte, len(sqliteHead))
	_, err = io.ReadFull(f, head)
	if err = errors.Join(err, f.Close()); err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		return false, err
	}
	return bytes.Equal(head, []byte(sqliteHead)), nil
}

// Pick picks all threads, or the named one if it is there.
func (k *Archive) Pick(ctx context.Context, named string) ([]string, error) {
	all, err := k.Threads.List(ctx)
	if err != nil {
		return nil, err
	}
	if len(all) == 0 {
		return nil, exit.NotFound(fmt.Errorf("the %s holds no thread; mortise run --store makes one", k.What))
	}
	if named == "" {
		return all, nil
	}
	for _, id := range all {
		if id == named {
			return []string{id}, nil
		}
	}
	return nil, exit.NotFound(fmt.Errorf("the %s holds no thread %q; it holds %s", k.What, named, term.Clip(strings.Join(all, ", "), 400)))
}
