package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strings"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/session"
	"github.com/mortise-dev/mortise/store/storeurl"
)

// home is the store that keeps what a command leaves, with the views of it.
type home struct {
	// name is the file, or the URL without credentials; path is the file alone.
	name, path string
	store      storeurl.Store
	mailbox    *mailbox.Records
}

// openHome opens the store of a file or a URL, and creates it if need be. Without a name there is none. The logger gets what is wrong with
// servers; nil discards it.
func openHome(ctx context.Context, name string, logger *slog.Logger) (*home, error) {
	return openStore(ctx, name, logger, false)
}

// openStore opens the store of a file or a URL. An existing one is not created: what is missing is an fs.ErrNotExist.
func openStore(ctx context.Context, name string, logger *slog.Logger, existing bool) (*home, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	h := &home{name: shown(name)}
	if !isURL(name) {
		h.path = name
	}
	var err error
	if h.store, err = storeurl.Open(ctx, name, storeurl.Options{Existing: existing, Logger: logger}); err != nil {
		if h.path != "" {
			err = badStore(name, err)
		}
		return nil, fmt.Errorf("store: %w", err)
	}
	h.mailbox = mailbox.On(h.store)
	return h, nil
}

func (h *home) sessions() session.Store { return session.On(h.store) }

func (h *home) records(ctx context.Context, cfg record.Config) (record.Store, error) {
	return record.On(ctx, h.store, cfg)
}

// shown is the name of a store without credentials, and without options, of which one may be a password. What could be either is left out.
func shown(name string) string {
	scheme, rest, _ := strings.Cut(name, "://")
	if !isURL(name) {
		return name
	}
	at, options := strings.LastIndex(rest, "@"), strings.Index(rest, "?")
	if options >= 0 && options < at {
		return scheme + "://..."
	}
	rest, _, _ = strings.Cut(rest[at+1:], "?")
	return scheme + "://" + rest
}

// located is the name of a store as [shown] gives it, with the schema that it is in, if that is named.
func located(name string) string {
	_, query, _ := strings.Cut(name, "?")
	options, err := url.ParseQuery(query)
	if schema := options.Get("schema"); isURL(name) && err == nil && schema != "" {
		return fmt.Sprintf("%s, schema %.40q", shown(name), schema)
	}
	return shown(name)
}

// isURL reports whether a store is named by a URL, and not by a path.
func isURL(name string) bool { return strings.Contains(name, "://") }

// close closes the store, after all that uses it.
func (h *home) close(ctx context.Context) error {
	if h == nil {
		return nil
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	return h.store.Close(closing)
}

// chooseStore sets the store to the one of the command line, or of the config, and refuses a folder for the
// same things beside it.
func (c *Config) chooseStore(o runOptions) error {
	store, name := o.store, "--store "+shown(o.store)
	if store == "" && c.Store != "" {
		store, name = c.path(c.Store), "store "+shown(c.Store)+" of the config"
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
func keepSessions(cfg *Config, dir string) (session.Store, error) {
	switch {
	case cfg.home != nil:
		return cfg.home.sessions(), nil
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
	records  recordReader
	// what is the folder, the file or the store, and flag what makes one.
	what, flag string
	home       *home
}

// recordReader is the part of a record.Store that reads.
type recordReader interface {
	List(n int) ([]record.Known, error)
	Load(id string) (*record.Run, error)
	io.Closer
}

// noRecords are the records of a store that has none. The place is its name.
type noRecords struct{ place string }

func (noRecords) List(int) ([]record.Known, error) { return nil, nil }

func (r noRecords) Load(id string) (*record.Run, error) {
	return nil, fmt.Errorf("record: run %.140q: %w, and there are none in %s", id, record.ErrUnknown, r.place)
}

func (noRecords) Close() error { return nil }

// openSessions opens the threads in a folder, a file or a store with a URL, whichever it is.
func openSessions(ctx context.Context, path string) (*archive, error) {
	k := &archive{what: "store " + located(path), flag: "--store"}
	if !isURL(path) {
		file, err := isStore(path)
		if errors.Is(err, os.ErrNotExist) {
			return nil, notFound(fmt.Errorf("%s: there is no such file or folder; name the one that mortise run --store or --session-dir has written", path))
		}
		if err != nil {
			return nil, err
		}
		if !file {
			d, err := session.Open(path)
			return &archive{sessions: d, what: "folder " + path, flag: "--session-dir"}, err
		}
		k.what = "file " + path
	}
	var err error
	if k.home, err = openStore(ctx, path, nil, true); err != nil {
		return nil, k.absent(err)
	}
	k.sessions = k.home.sessions()
	return k, nil
}

// absent adds to the error of a store that is not there, or has no sessions, what makes it.
func (k *archive) absent(err error) error {
	if errors.Is(err, fs.ErrNotExist) {
		return notFound(fmt.Errorf("the %s holds no thread; mortise run %s makes one: %w", k.what, k.flag, err))
	}
	return err
}

// openKeptRecords opens the records in a folder, a file or a store with a URL, whichever it is.
func openKeptRecords(ctx context.Context, path string) (*archive, error) {
	if !isURL(path) {
		file, err := isStore(path)
		if err != nil {
			return nil, err
		}
		if !file {
			f, err := record.Look(path)
			return &archive{records: f}, err
		}
	}
	k := &archive{}
	var err error
	if k.home, err = openStore(ctx, path, nil, true); err != nil {
		return nil, err
	}
	k.records = record.ReadOnly(k.home.store)
	if list, err := k.records.List(1); err == nil && len(list) == 0 {
		k.records = noRecords{located(path)}
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

// isStore reports whether a path is that of a store, and not of a folder.
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
