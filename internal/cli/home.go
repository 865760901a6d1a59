package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	"github.com/mortise-dev/mortise/store/sqlitestore/recordstore"
	"github.com/mortise-dev/mortise/store/sqlitestore/sessionstore"
)

// home is the SQLite file that keeps what a command leaves.
type home struct {
	path string
	file *sqlitestore.Store
}

// openHome opens the file, and makes it if need be. No path is no home.
func openHome(ctx context.Context, path string) (*home, error) {
	if path == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	file, err := sqlitestore.Open(ctx, sqlitestore.Config{Path: path})
	if err != nil {
		return nil, fmt.Errorf("store: %w", badStore(path, err))
	}
	return &home{path: path, file: file}, nil
}

// close closes the file, after all that uses it.
func (h *home) close(ctx context.Context) error {
	if h == nil {
		return nil
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return h.file.Close(closing)
}

// chooseStore sets the store to the one of the command line, or of the config, and refuses a folder for the
// same things beside it.
func (c *Config) chooseStore(o runOptions) error {
	store, name := o.store, "--store "+o.store
	if store == "" && c.Store != "" {
		store, name = c.path(c.Store), "store "+c.Store+" of the config"
	}
	if store == "" {
		return nil
	}
	kept := !o.noRecord && !c.Record.Disabled
	env := os.Getenv(recordDirEnv)
	switch {
	case o.sessionDir != "":
		return with(ExitUsage, fmt.Errorf("%s and --session-dir %s both say where messages are kept; name one", name, o.sessionDir))
	case kept && o.recordDir != "":
		return with(ExitUsage, fmt.Errorf("%s and --record-dir %s both say where decision records are kept; name one", name, o.recordDir))
	case kept && env != "":
		return with(ExitUsage, fmt.Errorf("%s and %s %s both say where decision records are kept; unset one", name, recordDirEnv, env))
	case kept && c.Record.Dir != "":
		return with(ExitUsage, fmt.Errorf("%s and record.dir %s of the config both say where decision records are kept; name one", name, c.Record.Dir))
	}
	c.Store = store
	return nil
}

// keepSessions is where threads are kept: the store, a folder, or nowhere.
func keepSessions(ctx context.Context, cfg *Config, dir string) (session.Store, error) {
	switch {
	case cfg.home != nil:
		s, err := sessionstore.New(ctx, cfg.home.file)
		if err != nil {
			return nil, fmt.Errorf("store: %w", err)
		}
		return s, nil
	case dir != "":
		d, err := session.Create(dir)
		if err != nil {
			return nil, fmt.Errorf("--session-dir: %w", err)
		}
		return d, nil
	}
	return nil, nil //nolint:nilnil // nobody is to keep anything
}

// archive is what was kept, in a folder or a file that somebody names.
type archive struct {
	sessions session.Store
	records  record.Store
	// what is the folder or the file, and flag what makes one.
	what, flag string
	home       *home
}

// openSessions opens the threads in a folder or a file, whichever it is.
func openSessions(ctx context.Context, path string) (*archive, error) {
	file, err := isStore(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, fmt.Errorf("%s: there is no such file or folder; name the one that mortise run --store or --session-dir has written", path)
	}
	if err != nil {
		return nil, err
	}
	if !file {
		d, err := session.Open(path)
		return &archive{sessions: d, what: "folder " + path, flag: "--session-dir"}, err
	}
	k := &archive{what: "file " + path, flag: "--store"}
	if k.home, err = openHome(ctx, path); err != nil {
		return nil, err
	}
	if k.sessions, err = sessionstore.New(ctx, k.home.file); err != nil {
		return nil, errors.Join(err, k.home.close(ctx))
	}
	return k, nil
}

// openKeptRecords opens the records in a folder or a file, whichever it is.
func openKeptRecords(ctx context.Context, path string) (*archive, error) {
	file, err := isStore(path)
	if err != nil {
		return nil, err
	}
	if !file {
		f, err := record.Look(path)
		return &archive{records: f}, err
	}
	k := &archive{}
	if k.home, err = openHome(ctx, path); err != nil {
		return nil, err
	}
	if k.records, err = recordstore.Look(ctx, k.home.file); err != nil {
		return nil, errors.Join(err, k.home.close(ctx))
	}
	return k, nil
}

func (k *archive) close(ctx context.Context) error {
	var errs []error
	if k.sessions != nil {
		errs = append(errs, k.sessions.Close())
	}
	if k.records != nil {
		errs = append(errs, k.records.Close())
	}
	return errors.Join(append(errs, k.home.close(ctx))...)
}

// sqliteHead is how a file of SQLite begins.
const sqliteHead = "SQLite format 3\x00"

// isStore says whether a path is that of a store, and not of a folder.
func isStore(path string) (bool, error) {
	info, err := os.Stat(path)
	if err != nil || info.IsDir() {
		return false, err
	}
	neither := fmt.Errorf("%s is neither a folder that mortise run writes to nor a file that mortise run --store has made", path)
	if !info.Mode().IsRegular() {
		return false, neither
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
	if !bytes.Equal(head, []byte(sqliteHead)) {
		return false, neither
	}
	return true, nil
}
