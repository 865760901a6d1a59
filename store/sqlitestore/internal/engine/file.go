package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"sync"
)

// ErrClosed is a file that was closed.
var ErrClosed = errors.New("the store is closed")

// DefaultReaders is how many may read at once.
const DefaultReaders = 4

// Config opens a [File].
type Config struct {
	// Path of the file. It is made when it is not there; its folder must be. Required.
	Path string
	// Readers is how many may read at once; [DefaultReaders] when zero.
	Readers int
	// Existing opens only what is there: no file and no tables are made. What is not there is an fs.ErrNotExist.
	Existing bool
}

// File is a database in a file.
type File struct {
	path     string
	existing bool
	place    place
	writer   *writer
	// readers has an entry for each that may read, nil where none is open yet.
	readers chan *Conn

	once   sync.Once
	closed chan struct{}
}

// Open opens the file. Call [File.Migrate] next.
func Open(ctx context.Context, cfg Config) (*File, error) {
	if cfg.Path == "" {
		return nil, errors.New("config: Path is empty; name a file")
	}
	if cfg.Readers < 0 {
		return nil, errors.New("config: Readers is negative")
	}
	path, err := filepath.Abs(cfg.Path)
	if err != nil {
		return nil, fmt.Errorf("config: Path %s: %w", cfg.Path, err)
	}
	if _, err := os.Stat(path); err != nil && cfg.Existing {
		return nil, err //nolint:wrapcheck // it names the file
	}
	if err := private(path); err != nil {
		return nil, err
	}
	var conn *Conn
	err = retry(ctx, func() (err error) {
		conn, err = connect(ctx, path, "busy_timeout = 0", "trusted_schema = OFF", "journal_mode = WAL", "synchronous = FULL",
			"fullfsync = ON", "cache_size = -16000")
		if err == nil {
			if _, err = conn.foreign(); err != nil {
				err = errors.Join(err, conn.close()) // it is tried again with another one
			}
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", path, err)
	}
	f := &File{path: path, existing: cfg.Existing, readers: make(chan *Conn, cmp.Or(cfg.Readers, DefaultReaders)), closed: make(chan struct{})}
	for range cap(f.readers) {
		f.readers <- nil
	}
	f.place.path = path
	f.writer = newWriter(ctx, conn, f.place.look)
	if err := f.place.look(); err != nil {
		return nil, errors.Join(err, f.Close(ctx))
	}
	return f, nil
}

// Path is where the file is.
func (f *File) Path() string { return f.path }

// Close waits until what was asked for is written, and closes the file. When ctx is done before, what
// waits for another process fails with [ErrClosed]. Calls after it fail; closing again waits again.
func (f *File) Close(ctx context.Context) error {
	err := f.writer.close(ctx)
	f.once.Do(func() {
		defer close(f.closed)
		for range cap(f.readers) {
			if c := <-f.readers; c != nil {
				err = errors.Join(err, c.close())
			}
		}
		close(f.readers)
	})
	<-f.closed
	return err
}

// Write runs do in a transaction of its own, as far as do can tell, and returns when that
// is on the disk. An error of do comes back as it is, and nothing of it is written. Do runs once at most, maybe in
// another goroutine, and not after Write has returned.
func (f *File) Write(ctx context.Context, do func(*Conn) error) error {
	return f.writer.write(ctx, false, do)
}

// WriteSoft is like [File.Write], but returns when the change is with the system: it survives the end of
// the process, and that of the machine only if a Write or some time has followed. Writes of both
// kinds come in the order in which they were asked for.
func (f *File) WriteSoft(ctx context.Context, do func(*Conn) error) error {
	return f.writer.write(ctx, true, do)
}

// Read runs do on the state of one moment, which has all that was written when Read
// was called. Do may run several times.
func (f *File) Read(ctx context.Context, do func(*Conn) error) error {
	if err := context.Cause(ctx); err != nil {
		return err
	}
	var conn *Conn
	var open bool
	select {
	case conn, open = <-f.readers:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if !open {
		return ErrClosed
	}
	defer func() { f.readers <- conn }()
	return retry(ctx, func() (err error) {
		if conn == nil {
			if err := f.place.look(); err != nil {
				return err
			}
			if conn, err = connect(ctx, f.path, "busy_timeout = 0", "trusted_schema = OFF", "query_only = ON"); err != nil {
				conn = nil
				return err
			}
		}
		return conn.snapshot(do)
	})
}

// snapshot runs do in a transaction that only reads.
func (c *Conn) snapshot(do func(*Conn) error) error {
	if _, err := c.Exec("BEGIN"); err != nil {
		return err
	}
	err := do(c)
	_, end := c.Exec("ROLLBACK")
	return errors.Join(err, end)
}

// source is the name of the database for the driver.
func source(path string) string {
	slashed := filepath.ToSlash(path)
	if slashed[0] != '/' { // a drive letter
		slashed = "/" + slashed
	}
	return (&url.URL{Scheme: "file", Path: slashed}).String()
}

// private makes the file, so that it never has another mode, and refuses one that
// others can read or write. SQLite gives its companions the mode of the file. A file that is
// there is not opened: closing it again would drop the locks that this process has on it.
func private(path string) error {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	switch {
	case err == nil:
		return f.Close()
	case !errors.Is(err, fs.ErrExist):
		return err
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return err
	case info.IsDir():
		return fmt.Errorf("%s is a directory; name a file in it", path)
	case !info.Mode().IsRegular():
		return fmt.Errorf("%s is not a regular file; name a file", path)
	case runtime.GOOS != "windows" && info.Mode().Perm()&0o077 != 0:
		return fmt.Errorf("%s: others can use the file (mode %s); use chmod 600", path, info.Mode().Perm())
	}
	return nil
}
