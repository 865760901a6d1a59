package files

import (
	"errors"
	"io"
	"io/fs"
	"os"

	experimentalsys "github.com/tetratelabs/wazero/experimental/sys"
	"github.com/tetratelabs/wazero/sys"

	"github.com/mortise-dev/mortise/internal/engine"
)

// maxDirents bounds what one look into a folder returns.
const maxDirents = 1024

// position has a name of its own because go vet takes a Seek of an int64 for
// io.Seeker's; wazero's returns another error.
type position = int64

// rootFile is an open file or folder of a rootFS.
type rootFile struct {
	experimentalsys.UnimplementedFile

	fs      *rootFS
	file    *os.File
	use     *engine.FileUse
	dir     bool
	appends bool
	// info reports whether another name or descriptor is that of the same file, and
	// nameless that the file was removed since. The folder guards them.
	info     fs.FileInfo
	nameless bool
}

// Dev implements experimentalsys.File.
func (f *rootFile) Dev() (uint64, experimentalsys.Errno) {
	st, errno := f.Stat()
	return st.Dev, errno
}

// Ino implements experimentalsys.File.
func (f *rootFile) Ino() (sys.Inode, experimentalsys.Errno) {
	st, errno := f.Stat()
	return st.Ino, errno
}

// IsDir implements experimentalsys.File.
func (f *rootFile) IsDir() (bool, experimentalsys.Errno) { return f.dir, 0 }

// IsAppend implements experimentalsys.File.
func (f *rootFile) IsAppend() bool { return f.appends }

// SetAppend implements experimentalsys.File.
func (f *rootFile) SetAppend(enable bool) experimentalsys.Errno {
	f.appends = enable
	return 0
}

// Stat implements experimentalsys.File.
func (f *rootFile) Stat() (sys.Stat_t, experimentalsys.Errno) {
	info, err := f.file.Stat()
	if err != nil {
		return sys.Stat_t{}, f.fs.errno(err)
	}
	return sys.NewStat_t(info), 0
}

// Read implements experimentalsys.File.
func (f *rootFile) Read(buf []byte) (int, experimentalsys.Errno) {
	return f.read(buf, f.file.Read)
}

// Pread implements experimentalsys.File.
func (f *rootFile) Pread(buf []byte, off int64) (int, experimentalsys.Errno) {
	return f.read(buf, func(b []byte) (int, error) { return f.file.ReadAt(b, off) })
}

// read reads at most a chunk, so that a guest pays before the next one.
func (f *rootFile) read(buf []byte, from func([]byte) (int, error)) (int, experimentalsys.Errno) {
	if f.dir {
		return 0, experimentalsys.EISDIR
	}
	buf = buf[:min(len(buf), engine.HostChunk)]
	f.fs.user.Spend(len(buf)/64 + 100)
	n, err := from(buf)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, f.fs.errno(err)
}

// Seek implements experimentalsys.File.
func (f *rootFile) Seek(offset position, whence int) (int64, experimentalsys.Errno) {
	if f.dir && (offset != 0 || whence != io.SeekStart) {
		return 0, experimentalsys.EISDIR
	}
	if whence < io.SeekStart || whence > io.SeekEnd {
		return 0, experimentalsys.EINVAL
	}
	at, err := f.file.Seek(offset, whence)
	return at, f.fs.errno(err)
}

// Readdir implements experimentalsys.File.
func (f *rootFile) Readdir(n int) ([]experimentalsys.Dirent, experimentalsys.Errno) {
	if !f.dir {
		return nil, experimentalsys.ENOTDIR
	}
	if n <= 0 || n > maxDirents {
		n = maxDirents
	}
	f.fs.user.Spend(100 * n)
	entries, err := f.file.ReadDir(n)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, f.fs.errno(err)
	}
	out := make([]experimentalsys.Dirent, len(entries))
	for i, e := range entries {
		out[i] = experimentalsys.Dirent{Name: e.Name(), Type: e.Type() & fs.ModeType}
	}
	return out, 0
}

// Write implements experimentalsys.File.
func (f *rootFile) Write(buf []byte) (int, experimentalsys.Errno) {
	whence := io.SeekCurrent
	if f.appends {
		whence = io.SeekEnd
	}
	return f.write(buf, func() (int64, error) { return f.file.Seek(0, whence) }, f.file.Write)
}

// Pwrite implements experimentalsys.File.
func (f *rootFile) Pwrite(buf []byte, off int64) (int, experimentalsys.Errno) {
	if off < 0 {
		return 0, experimentalsys.EINVAL
	}
	return f.write(buf, func() (int64, error) { return off, nil }, func(b []byte) (int, error) { return f.file.WriteAt(b, off) })
}

// write writes a chunk where at says, if folder and call have room for it.
func (f *rootFile) write(buf []byte, at func() (int64, error), to func([]byte) (int, error)) (n int, errno experimentalsys.Errno) {
	switch {
	case f.dir:
		return 0, experimentalsys.EISDIR
	case !f.fs.folder.Writable:
		return 0, f.fs.deny(experimentalsys.EBADF)
	}
	buf = buf[:min(len(buf), engine.HostChunk)]
	f.fs.user.Spend(len(buf)/16 + 1000)
	if !f.use.Room(len(buf), f.fs.folder.Bytes) {
		return 0, f.fs.errno(engine.ErrQuota)
	}
	var start int64
	err := f.fs.folder.resize(f.file, func(before int64) int64 {
		var err error
		if start, err = at(); err != nil {
			return before // the write has the error
		}
		return max(before, sum(start, int64(len(buf))))
	}, func() (err error) {
		n, err = to(buf)
		return err
	})
	return n, f.fs.errno(err)
}

// Truncate implements experimentalsys.File.
func (f *rootFile) Truncate(size int64) experimentalsys.Errno {
	switch {
	case f.dir:
		return experimentalsys.EISDIR
	case size < 0:
		return experimentalsys.EINVAL
	case !f.fs.folder.Writable:
		return f.fs.deny(experimentalsys.EBADF)
	}
	f.fs.user.Spend(fileOperation)
	return f.fs.errno(f.fs.folder.resize(f.file, func(int64) int64 { return size }, func() error { return f.file.Truncate(size) }))
}

// Sync implements experimentalsys.File.
func (f *rootFile) Sync() experimentalsys.Errno {
	if !f.fs.folder.Writable {
		return experimentalsys.EBADF
	}
	// A guest must not make the disk's owner wait; the system writes when it does.
	f.fs.user.Spend(fileOperation)
	return 0
}

// Datasync implements experimentalsys.File.
func (f *rootFile) Datasync() experimentalsys.Errno { return f.Sync() }

// Utimens implements experimentalsys.File.
func (f *rootFile) Utimens(int64, int64) experimentalsys.Errno { return experimentalsys.ENOSYS }

// Close implements experimentalsys.File.
func (f *rootFile) Close() experimentalsys.Errno {
	err := f.fs.folder.close(f)
	if err == nil {
		f.use.Files--
	}
	return f.fs.errno(err)
}
