package files

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"sync/atomic"
	"syscall"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"

	"github.com/mortise-dev/mortise/internal/engine"
)

// FolderSpec is what a folder is opened with. Its fields are those of a Mount of the capability fs.
type FolderSpec struct {
	Host, Guest string
	Writable    bool
	Bytes       int64
	Entries     int
}

// Folder is an open mount, shared by the instances of a module.
type Folder struct {
	FolderSpec

	root *os.Root
	env  *engine.Env
	uses *atomic.Int64

	// mu guards what follows, and holds while a size is read and changed, and while a
	// name goes.
	mu      sync.Mutex
	bytes   int64
	entries int
	// files are those that guests have open in a writable folder.
	files map[*rootFile]struct{}
}

// Mount implements engine.Mounted.
func (f *Folder) Mount(user engine.FileUser) (string, experimentalsys.FS) {
	return f.FolderSpec.Guest, &rootFS{folder: f, user: user}
}

// OpenFolder opens a mount. A writable one is counted.
func OpenFolder(m FolderSpec, env *engine.Env) (*Folder, error) {
	root, err := os.OpenRoot(m.Host)
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", engine.Clean(m.Guest, engine.MaxName), err)
	}
	f := &Folder{FolderSpec: m, root: root, env: env, uses: env.Use.Counter("fs")}
	if m.Writable {
		if err := f.count(); err != nil {
			return nil, errors.Join(fmt.Errorf("mount %s: %w", engine.Clean(m.Guest, engine.MaxName), err), root.Close())
		}
	}
	return f, nil
}

// count sums up what is in the folder, and stops when the quota is passed.
func (f *Folder) count() error {
	return fs.WalkDir(f.root.FS(), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		f.entries++
		if d.Type().IsRegular() {
			info, err := d.Info()
			if err != nil {
				return err
			}
			f.bytes += info.Size()
		}
		if f.entries > f.Entries || f.bytes > f.Bytes {
			return fmt.Errorf("%w: the folder holds more than %d bytes or %d entries; raise Bytes or Entries, or empty it",
				engine.ErrQuota, f.Bytes, f.Entries)
		}
		return nil
	})
}

// add makes room for an entry, or gives it back when n is -1.
func (f *Folder) add(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > 0 && f.entries >= f.Entries {
		return false
	}
	f.entries += n
	return true
}

// hold notes a file that a guest has opened by a name. It fails when the name leads
// elsewhere meanwhile: such a file may be gone, unnoted.
func (f *Folder) hold(file *rootFile, name string, info fs.FileInfo) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	now, err := f.root.Stat(name)
	if err != nil {
		return err
	}
	if !os.SameFile(now, info) {
		return syscall.ENOENT
	}
	if f.files == nil {
		f.files = map[*rootFile]struct{}{}
	}
	f.files[file], file.info = struct{}{}, info
	return nil
}

// drop gives back what an entry took that has lost its name; the folder is locked. A
// file that guests have open takes its room until the last of them closes it: they can
// still make it larger and smaller.
func (f *Folder) drop(info fs.FileInfo) {
	f.entries = max(0, f.entries-1)
	if !info.Mode().IsRegular() {
		return
	}
	open := false
	for file := range f.files {
		if os.SameFile(file.info, info) {
			file.nameless, open = true, true
		}
	}
	if !open {
		f.take(-info.Size())
	}
}

// close closes a file that hold has noted.
func (f *Folder) close(file *rootFile) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	size := int64(0)
	if info, err := file.file.Stat(); err == nil {
		size = info.Size()
	}
	err := file.file.Close()
	if _, held := f.files[file]; !held {
		return err
	}
	delete(f.files, file)
	for other := range f.files {
		if os.SameFile(other.info, file.info) {
			return err
		}
	}
	if file.nameless {
		f.take(-size)
	}
	return err
}

// take notes bytes that came or went. What another program has put into the folder was
// never counted, and gives no room when it goes. The folder is locked.
func (f *Folder) take(n int64) { f.bytes = max(0, f.bytes+n) }

// resize runs change, which makes a file of the size that before tells as large as
// size, if there is room. What change says decides what is counted.
func (f *Folder) resize(file *os.File, size func(before int64) int64, change func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	before := info.Size()
	growth := size(before) - before
	if growth > 0 && growth > f.Bytes-f.bytes {
		return engine.ErrQuota
	}
	err = change()
	if info, statErr := file.Stat(); statErr == nil {
		f.take(info.Size() - before)
	}
	return err
}

// Release closes the folder. It comes after the last instance was closed.
func (f *Folder) Release() error { return f.root.Close() }
