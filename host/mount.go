package host

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"syscall"
)

// Mount grants a folder of the host, by WASI. Nothing outside of the folder can be
// reached: not by "..", not by an absolute path, and not through a symbolic link
// that leads out. Only regular files and folders can be opened. Guests cannot
// make links. A guest that has opened a file gets a new instance for its next
// call, because WASI would keep the descriptor.
type Mount struct {
	// Host is the folder. It must exist when the module is loaded. Required.
	Host string
	// Guest is where the guest sees it: an absolute path without "." and "..", such
	// as "/data". Required.
	Guest string
	// Writable lets the guest change what is there. New files belong to the user of
	// this process and have mode 0600, folders 0700.
	Writable bool
	// Bytes bounds a writable folder: the size of all its files together, counted at
	// load and then kept up with what guests of this module do, and what one call
	// may write. Default 16 MiB.
	Bytes int64
	// Entries bounds the files and folders in it. Default 10,000.
	Entries int
}

// withDefaults checks a mount and fills in its zero fields.
func (m Mount) withDefaults(n int) (Mount, error) {
	at := fmt.Sprintf("Grants.Files[%d]", n)
	switch {
	case m.Host == "":
		return m, fmt.Errorf("%s.Host is empty; name a folder", at)
	case !strings.HasPrefix(m.Guest, "/") || path.Clean(m.Guest) != m.Guest || strings.ContainsRune(m.Guest, 0):
		return m, fmt.Errorf("%s.Guest %q is not an absolute clean path; write one such as /data", at, clean(m.Guest, maxName))
	}
	if err := negative(field{at + ".Bytes", m.Bytes}, field{at + ".Entries", int64(m.Entries)}); err != nil {
		return m, err
	}
	m.Bytes = cmp.Or(m.Bytes, 16<<20)
	m.Entries = cmp.Or(m.Entries, 10_000)
	return m, nil
}

// mounts checks the mounts of a module.
func mounts(in []Mount) ([]Mount, error) {
	var out []Mount
	seen := map[string]bool{}
	for n, m := range in {
		m, err := m.withDefaults(n)
		if err != nil {
			return nil, err
		}
		if seen[m.Guest] {
			return nil, fmt.Errorf("Grants.Files[%d].Guest %s is there twice; give each mount a path of its own", n, clean(m.Guest, maxName))
		}
		seen[m.Guest] = true
		out = append(out, m)
	}
	return out, nil
}

// folder is an open mount, shared by the instances of a module.
type folder struct {
	Mount

	root *os.Root

	// mu guards what follows, and holds while a size is read and changed, and while a
	// name goes.
	mu      sync.Mutex
	bytes   int64
	entries int
	// files are those that guests have open in a writable folder.
	files map[*rootFile]struct{}
}

// openFolder opens a mount. A writable one is counted.
func openFolder(m Mount) (*folder, error) {
	root, err := os.OpenRoot(m.Host)
	if err != nil {
		return nil, fmt.Errorf("mount %s: %w", clean(m.Guest, maxName), err)
	}
	f := &folder{Mount: m, root: root}
	if m.Writable {
		if err := f.count(); err != nil {
			return nil, errors.Join(fmt.Errorf("mount %s: %w", clean(m.Guest, maxName), err), root.Close())
		}
	}
	return f, nil
}

// count sums up what is in the folder, and stops when the quota is passed.
func (f *folder) count() error {
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
				ErrQuota, f.Bytes, f.Entries)
		}
		return nil
	})
}

// add makes room for an entry, or gives it back when n is -1.
func (f *folder) add(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if n > 0 && f.entries >= f.Entries {
		return false
	}
	f.entries += n
	return true
}

// hold notes a file that a guest has opened by a name. It fails when the name leads
// elsewhere meanwhile: such a file may be gone, and nobody would have noted it.
func (f *folder) hold(file *rootFile, name string, info fs.FileInfo) error {
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
func (f *folder) drop(info fs.FileInfo) {
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
func (f *folder) close(file *rootFile) error {
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

// take notes bytes that came or went. What somebody else has put into the folder was
// never counted, and gives no room when it goes. The folder is locked.
func (f *folder) take(n int64) { f.bytes = max(0, f.bytes+n) }

// resize runs change, which makes a file of the size that before tells as large as
// size, if there is room. What change says decides what is counted.
func (f *folder) resize(file *os.File, size func(before int64) int64, change func() error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	before := info.Size()
	growth := size(before) - before
	if growth > 0 && growth > f.Bytes-f.bytes {
		return ErrQuota
	}
	err = change()
	if info, statErr := file.Stat(); statErr == nil {
		f.take(info.Size() - before)
	}
	return err
}
