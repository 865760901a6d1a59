package files

import (
	"errors"
	"io/fs"
	"math"
	"os"
	"path"
	"syscall"

	"github.com/tetratelabs/wazero"
	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/experimental/sysfs"
	"github.com/tetratelabs/wazero/sys"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Fuel for an operation on a folder.
const fileOperation = 5_000

// rootFS shows a folder to the guest of one instance. All paths go through
// os.Root, which never leaves the folder.
type rootFS struct {
	experimentalsys.UnimplementedFS

	folder *Folder
	user   engine.FileUser
}

// MountAll adds folders to what an instance is made with.
func MountAll(config wazero.ModuleConfig, mounts []engine.Mounted, user engine.FileUser) wazero.ModuleConfig {
	if len(mounts) == 0 {
		return config
	}
	all := wazero.NewFSConfig()
	for _, m := range mounts {
		at, folder := m.Mount(user)
		all = all.(sysfs.FSConfig).WithSysFSMount(folder, at) //nolint:errcheck,forcetypeassert // wazero documents it
	}
	return config.WithFSConfig(all)
}

// enter pays for an operation, counts it, and checks the path.
func (r *rootFS) enter(name string) (string, experimentalsys.Errno) {
	r.folder.uses.Add(1)
	r.user.Spend(fileOperation + len(name))
	if len(name) > engine.MaxPath {
		return "", experimentalsys.ENAMETOOLONG
	}
	if name == "" || name == "/" {
		return ".", 0
	}
	return path.Clean(name), 0
}

// change is enter for an operation that changes the folder.
func (r *rootFS) change(name string) (string, experimentalsys.Errno) {
	name, errno := r.enter(name)
	if errno == 0 && !r.folder.Writable {
		return "", r.deny(experimentalsys.EROFS)
	}
	return name, errno
}

// deny counts a refusal.
func (r *rootFS) deny(errno experimentalsys.Errno) experimentalsys.Errno {
	r.folder.env.Use.Denied.Add(1)
	return errno
}

// errno makes an error of the system into one of WASI.
func (r *rootFS) errno(err error) experimentalsys.Errno {
	switch {
	case err == nil:
		return 0
	case errors.Is(err, engine.ErrQuota):
		return r.deny(experimentalsys.EIO) // there is none for a quota
	case errors.Is(err, fs.ErrClosed):
		return experimentalsys.EBADF
	}
	if no, ok := errors.AsType[syscall.Errno](err); ok {
		return experimentalsys.UnwrapOSError(no)
	}
	// os.Root says with an error of its own that a path leads out.
	if _, ok := errors.AsType[*fs.PathError](err); ok {
		return r.deny(experimentalsys.EPERM)
	}
	return experimentalsys.UnwrapOSError(err)
}

// OpenFile implements experimentalsys.FS.
func (r *rootFS) OpenFile(name string, flag experimentalsys.Oflag, _ fs.FileMode) (experimentalsys.File, experimentalsys.Errno) {
	name, errno := r.enter(name)
	if errno != 0 {
		return nil, errno
	}
	const writing = experimentalsys.O_WRONLY | experimentalsys.O_RDWR
	changes := flag&(writing|experimentalsys.O_CREAT|experimentalsys.O_TRUNC|experimentalsys.O_APPEND) != 0
	switch {
	case flag&experimentalsys.O_DIRECTORY != 0 && changes:
		return nil, experimentalsys.EISDIR
	case changes && !r.folder.Writable:
		return nil, r.deny(experimentalsys.EROFS)
	}
	use := r.user.Open()
	if use.Files >= engine.MaxOpenFiles {
		return nil, r.deny(experimentalsys.EAGAIN) // there is none for too many files
	}
	f, errno := r.open(name, flag)
	if errno != 0 {
		return nil, errno
	}
	out := &rootFile{fs: r, file: f, use: use, appends: flag&experimentalsys.O_APPEND != 0}
	use.Files++
	if errno := r.adopt(out, name, flag); errno != 0 {
		_ = out.Close()
		return nil, errno
	}
	return out, 0
}

// open opens or makes a file. It does not wait for the other end of a pipe.
func (r *rootFS) open(name string, flag experimentalsys.Oflag) (*os.File, experimentalsys.Errno) {
	how := os.O_RDONLY | syscall.O_NONBLOCK
	switch {
	case flag&experimentalsys.O_RDWR != 0:
		how = os.O_RDWR | syscall.O_NONBLOCK
	case flag&experimentalsys.O_WRONLY != 0:
		how = os.O_WRONLY | syscall.O_NONBLOCK
	}
	if flag&experimentalsys.O_CREAT != 0 {
		// Made by itself, so that it is counted exactly once.
		f, made, errno := r.create(name, how)
		if made || errno != 0 && errno != experimentalsys.EEXIST || flag&experimentalsys.O_EXCL != 0 {
			return f, errno
		}
	}
	if flag&experimentalsys.O_NOFOLLOW != 0 {
		if info, err := r.folder.root.Lstat(name); err == nil && info.Mode()&fs.ModeSymlink != 0 {
			return nil, experimentalsys.ELOOP
		}
	}
	f, err := r.folder.root.OpenFile(name, how, 0)
	return f, r.errno(err)
}

func (r *rootFS) create(name string, how int) (f *os.File, made bool, errno experimentalsys.Errno) {
	if !r.folder.add(1) {
		// A file that is there may still be opened.
		if _, err := r.folder.root.Stat(name); err == nil {
			return nil, false, experimentalsys.EEXIST
		}
		return nil, false, r.errno(engine.ErrQuota)
	}
	f, err := r.folder.root.OpenFile(name, how|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		r.folder.add(-1)
		return nil, false, r.errno(err)
	}
	return f, true, 0
}

// adopt checks what was opened, and empties it when the guest asked for that.
func (r *rootFS) adopt(out *rootFile, name string, flag experimentalsys.Oflag) experimentalsys.Errno {
	info, err := out.file.Stat()
	if err != nil {
		return r.errno(err)
	}
	switch out.dir = info.IsDir(); {
	case !out.dir && !info.Mode().IsRegular():
		return r.deny(experimentalsys.EPERM)
	case flag&experimentalsys.O_DIRECTORY != 0 && !out.dir:
		return experimentalsys.ENOTDIR
	case out.dir || !r.folder.Writable:
		return 0
	}
	if err := r.folder.hold(out, name, info); err != nil {
		return r.errno(err)
	}
	if flag&experimentalsys.O_TRUNC != 0 {
		return out.Truncate(0)
	}
	return 0
}

// Lstat implements experimentalsys.FS.
func (r *rootFS) Lstat(name string) (sys.Stat_t, experimentalsys.Errno) {
	return r.stat(name, r.folder.root.Lstat)
}

// Stat implements experimentalsys.FS.
func (r *rootFS) Stat(name string) (sys.Stat_t, experimentalsys.Errno) {
	return r.stat(name, r.folder.root.Stat)
}

func (r *rootFS) stat(name string, look func(string) (fs.FileInfo, error)) (sys.Stat_t, experimentalsys.Errno) {
	name, errno := r.enter(name)
	if errno != 0 {
		return sys.Stat_t{}, errno
	}
	info, err := look(name)
	if err != nil {
		return sys.Stat_t{}, r.errno(err)
	}
	return sys.NewStat_t(info), 0
}

// Readlink implements experimentalsys.FS.
func (r *rootFS) Readlink(name string) (string, experimentalsys.Errno) {
	name, errno := r.enter(name)
	if errno != 0 {
		return "", errno
	}
	to, err := r.folder.root.Readlink(name)
	if err == nil && path.IsAbs(to) {
		return "", r.deny(experimentalsys.EPERM) // it holds the names of the host's folders
	}
	return to, r.errno(err)
}

// Mkdir implements experimentalsys.FS.
func (r *rootFS) Mkdir(name string, _ fs.FileMode) experimentalsys.Errno {
	name, errno := r.change(name)
	if errno != 0 {
		return errno
	}
	if !r.folder.add(1) {
		return r.errno(engine.ErrQuota)
	}
	err := r.folder.root.Mkdir(name, 0o700)
	if err != nil {
		r.folder.add(-1)
	}
	return r.errno(err)
}

// Rmdir implements experimentalsys.FS.
func (r *rootFS) Rmdir(name string) experimentalsys.Errno { return r.remove(name, true) }

// Unlink implements experimentalsys.FS.
func (r *rootFS) Unlink(name string) experimentalsys.Errno { return r.remove(name, false) }

func (r *rootFS) remove(name string, dir bool) experimentalsys.Errno {
	name, errno := r.change(name)
	if errno != 0 {
		return errno
	}
	r.folder.mu.Lock()
	defer r.folder.mu.Unlock()
	info, err := r.folder.root.Lstat(name)
	switch {
	case err != nil:
		return r.errno(err)
	case dir && !info.IsDir():
		return experimentalsys.ENOTDIR
	case !dir && info.IsDir():
		return experimentalsys.EISDIR
	}
	if err := r.folder.root.Remove(name); err != nil {
		return r.errno(err)
	}
	r.folder.drop(info)
	return 0
}

// Rename implements experimentalsys.FS.
func (r *rootFS) Rename(from, to string) experimentalsys.Errno {
	from, errno := r.change(from)
	if errno != 0 {
		return errno
	}
	to, errno = r.change(to)
	if errno != 0 {
		return errno
	}
	r.folder.mu.Lock()
	defer r.folder.mu.Unlock()
	source, err := r.folder.root.Lstat(from)
	if err != nil {
		return r.errno(err)
	}
	target, lost := r.folder.root.Lstat(to)
	if err := r.folder.root.Rename(from, to); err != nil {
		return r.errno(err)
	}
	if lost == nil && !os.SameFile(source, target) {
		r.folder.drop(target)
	}
	return 0
}

// Link implements experimentalsys.FS: a second name would count twice, and a
// symbolic link could lead other programs out of the folder.
func (r *rootFS) Link(string, string) experimentalsys.Errno {
	return r.deny(experimentalsys.EPERM)
}

// Symlink implements experimentalsys.FS.
func (r *rootFS) Symlink(string, string) experimentalsys.Errno {
	return r.deny(experimentalsys.EPERM)
}

// Utimens implements experimentalsys.FS.
func (r *rootFS) Utimens(name string, _, _ int64) experimentalsys.Errno {
	if _, errno := r.change(name); errno != 0 {
		return errno
	}
	return experimentalsys.ENOSYS
}

// sum is a+b, or the largest number.
func sum(a, b int64) int64 {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}
