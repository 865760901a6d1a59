package outbox

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"
)

// Defaults of [FileConfig].
const (
	DefaultMaxBytes     = 1 << 30
	DefaultRewriteBytes = 4 << 20
)

// lockTries and lockPause bound how long OpenFile waits for the lock.
const (
	lockTries = 20
	lockPause = 10 * time.Millisecond
)

// Errors of stores.
var (
	// ErrLocked is a journal that another process, or another store, uses.
	ErrLocked = errors.New("journal is in use")
	// ErrTooLarge is an entry that is larger than a journal takes.
	ErrTooLarge = errors.New("entry is too large")
	// ErrStoreClosed is a store that was closed, or that failed and must be opened
	// again.
	ErrStoreClosed = errors.New("store is closed")
)

// FileConfig opens a [File]. Path is required.
type FileConfig struct {
	// Path of the journal. Its folder is made if it is missing, for the user alone.
	// Beside it lie Path.lock and, for a moment, Path.new.
	Path string
	// MaxBytes bounds the journal. RewriteBytes is the size from which it is
	// rewritten when most of it is no longer needed.
	MaxBytes, RewriteBytes int64
	// NoSync leaves it to the system when to write to the disk: what was accepted
	// survives a crash of the process, but not one of the machine.
	NoSync bool
}

// File is a [Store] in one append-only file, with all of it in memory too. Changes
// that come at the same time share one write to the disk. Make one with [OpenFile];
// whoever did closes it.
type File struct {
	cfg  FileConfig
	lock *os.File

	mu      sync.Mutex
	index   index
	flying  map[string]chan struct{} // keys on their way to the disk, by thread and key; closed when they are there or failed
	batch   *batch                   // collects, while another is written
	writing bool
	file    *os.File
	size    int64
	// rewriteAt is the size at which to try a rewrite; inVain is how many removals
	// there were at the last try.
	rewriteAt        int64
	removals, inVain int
	idle             *sync.Cond
	err              error // why the store takes nothing any more
}

// batch is what one write takes to the disk.
type batch struct {
	lines []byte
	ops   []op
	grows bool
	done  chan struct{}
	err   error
}

// OpenFile opens or makes a journal and reads it. What a crash left half written
// is cut off; it was never accepted. [ErrLocked] means that somebody else has it
// open, [ErrCorrupt] that it cannot be read; it is then left as it is.
func OpenFile(cfg FileConfig) (*File, error) {
	cfg.MaxBytes = cmp.Or(cfg.MaxBytes, DefaultMaxBytes)
	cfg.RewriteBytes = cmp.Or(cfg.RewriteBytes, DefaultRewriteBytes)
	switch {
	case cfg.Path == "":
		return nil, errors.New("outbox: FileConfig.Path is missing")
	case cfg.MaxBytes < 0:
		return nil, errors.New("outbox: FileConfig.MaxBytes is negative")
	case cfg.RewriteBytes < 0:
		return nil, errors.New("outbox: FileConfig.RewriteBytes is negative")
	}
	f := &File{cfg: cfg, rewriteAt: cfg.RewriteBytes, inVain: -1, index: newIndex(), flying: map[string]chan struct{}{}, batch: newBatch()}
	f.idle = sync.NewCond(&f.mu)
	if err := f.open(); err != nil {
		return nil, fmt.Errorf("outbox: journal %s: %w", cfg.Path, err)
	}
	return f, nil
}

func newBatch() *batch { return &batch{done: make(chan struct{})} }

func (f *File) open() (err error) {
	if err := os.MkdirAll(filepath.Dir(f.cfg.Path), 0o700); err != nil {
		return err
	}
	if f.lock, err = takeLock(f.cfg.Path); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, f.lock.Close())
		}
	}()
	if f.file, err = os.OpenFile(f.cfg.Path, os.O_CREATE|os.O_RDWR, 0o600); err != nil {
		return err
	}
	f.size, err = replay(f.file, &f.index)
	if err == nil {
		err = f.file.Truncate(f.size)
	}
	if err == nil {
		_, err = f.file.Seek(f.size, 0)
	}
	if err == nil {
		err = syncFolder(f.cfg.Path)
	}
	if err != nil {
		return errors.Join(err, f.file.Close())
	}
	return nil
}

// Lock takes what is kept under a path for whoever holds the lock alone, until that is closed or the
// process ends. It is for stores that several processes can open at once: one Outbox at a time uses a
// Store. Beside the path lies Path.lock. [ErrLocked] means that somebody else has it.
func Lock(path string) (io.Closer, error) {
	f, err := takeLock(path)
	if err != nil {
		return nil, fmt.Errorf("outbox: %s: %w", path, err)
	}
	return f, nil
}

func takeLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := lockPatiently(f); err != nil {
		return nil, errors.Join(fmt.Errorf("%w: %w", ErrLocked, err), f.Close())
	}
	return f, nil
}

// lockPatiently tries for a moment: a process that this one starts has the lock of
// a store that was just closed for as long as it takes to start.
func lockPatiently(f *os.File) error {
	err := lockFile(f)
	for range lockTries {
		if err == nil {
			return nil
		}
		<-time.After(lockPause)
		err = lockFile(f)
	}
	return err
}

// Close waits for what is being written and closes the journal. Closing again does
// nothing.
func (f *File) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	for f.writing {
		f.idle.Wait()
	}
	if f.file == nil {
		return nil
	}
	err := errors.Join(f.file.Close(), f.lock.Close())
	f.file = nil
	if f.err == nil {
		f.err = ErrStoreClosed
	}
	return err
}

// Append implements [Store].
func (f *File) Append(ctx context.Context, c Change) (seq uint64, err error) {
	if c.Key == "" {
		return f.append(c)
	}
	key := c.Thread + "\x00" + c.Key
	for {
		f.mu.Lock()
		if f.index.taken(c.Thread, c.Key) {
			f.mu.Unlock()
			return 0, nil
		}
		landed := f.flying[key]
		if landed == nil {
			landed = make(chan struct{})
			f.flying[key] = landed
			f.mu.Unlock()
			seq, err = f.append(c)
			f.mu.Lock()
			delete(f.flying, key)
			f.mu.Unlock()
			close(landed)
			return seq, err
		}
		f.mu.Unlock()
		select { // somebody is queuing the same; it is not there until that is written
		case <-landed:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

func (f *File) append(c Change) (uint64, error) {
	var seq uint64
	err := f.write(func() op {
		o := f.index.plan(c)
		seq = o.Seq
		return o
	})
	return seq, err
}

// Remove implements [Store].
func (f *File) Remove(_ context.Context, thread string, seqs ...uint64) error {
	return f.write(func() op { return op{Kind: opRemove, Thread: thread, Seqs: seqs} })
}

// Forget implements [Store].
func (f *File) Forget(_ context.Context, thread string, tasks ...string) error {
	return f.write(func() op { return op{Kind: opForget, Thread: thread, Tasks: tasks} })
}

// Pending implements [Store].
func (f *File) Pending(_ context.Context, thread string, after uint64, limit int) ([]Entry, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.index.pending(thread, after, limit), f.err
}

// Threads implements [Store].
func (f *File) Threads(context.Context) ([]string, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.index.names(), f.err
}

// Records implements [Store].
func (f *File) Records(_ context.Context, thread string) (map[string][]byte, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.index.records(thread), f.err
}
