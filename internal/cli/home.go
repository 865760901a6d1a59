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

	"github.com/mortise-dev/mortise/thread"
)

// home is the store of a command.
type home struct {
	// name is the file, or the URL without credentials; path is the file alone.
	name, path string
	store      Store
}

// openHome opens the store of the config, and creates it if need be. Without a name there is none. The logger gets what is wrong with
// servers; nil discards it.
func (c *Config) openHome(ctx context.Context, logger *slog.Logger) (*home, error) {
	return c.links.openStore(ctx, c.Store, logger, false)
}

// openStore opens the store of a file or a URL. An existing one is not created: what is missing is an fs.ErrNotExist.
func (l Links) openStore(ctx context.Context, name string, logger *slog.Logger, existing bool) (*home, error) {
	if name == "" {
		return nil, nil //nolint:nilnil // there is none
	}
	h := &home{name: shown(name)}
	if !isURL(name) {
		h.path = name
	}
	var err error
	if h.store, err = l.OpenStore(ctx, name, existing, logger); err != nil {
		if h.path != "" {
			err = badStore(name, err)
		}
		return nil, fmt.Errorf("store: %w", err)
	}
	return h, nil
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

// chooseStore sets the store to the one of the command line, or of the config, and refuses another one for decision records.
func (c *Config) chooseStore(o runOptions) error {
	store, name := o.store, "--store "+shown(o.store)
	if store == "" && c.Store != "" {
		store, name = c.path(c.Store), "store "+shown(c.Store)+" of the config"
	}
	if store == "" {
		return nil
	}
	env := os.Getenv(recordStoreEnv)
	switch {
	case o.noRecord || c.Record.Disabled:
	case o.recordStore != "":
		return with(ExitUsage, fmt.Errorf("%s and --record-store %s both name where decision records are kept; name one", name, shown(o.recordStore)))
	case env != "":
		return with(ExitUsage, fmt.Errorf("%s and %s %s both name where decision records are kept; unset one", name, recordStoreEnv, shown(env)))
	case c.Record.Store != "":
		return with(ExitUsage, fmt.Errorf("%s and record.store %s of the config both name where decision records are kept; name one", name, shown(c.Record.Store)))
	}
	c.Store = store
	return nil
}

// archive has the threads of a store that the user names.
type archive struct {
	home    *home
	threads *thread.Threads
	// what is the file or the store.
	what string
}

// openThreads opens the threads of an existing store.
func (l Links) openThreads(ctx context.Context, name string) (*archive, error) {
	k := &archive{what: "store " + located(name)}
	if !isURL(name) {
		k.what = "file " + name
	}
	var err error
	k.home, err = l.openStore(ctx, name, nil, true)
	if errors.Is(err, fs.ErrNotExist) && !isURL(name) {
		return nil, notFound(fmt.Errorf("%s: there is no such file; name the one that mortise run --store has made", name))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil, notFound(fmt.Errorf("the %s holds no thread; mortise run --store makes one: %w", k.what, err))
	}
	if err != nil {
		return nil, err
	}
	k.threads = thread.On(k.home.store)
	return k, nil
}

// sqliteHead is how a file of SQLite begins.
const sqliteHead = "SQLite format 3\x00"

// isFile reports whether a path is that of a SQLite file.
func isFile(path string) (bool, error) {
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
