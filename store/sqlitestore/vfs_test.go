package sqlitestore_test

import (
	"path/filepath"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// Functions that SQLite finds in its tables.
type (
	openFile     = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	writeFile    = func(tls *libc.TLS, file, data uintptr, size int32, at int64) int32
	truncateFile = func(tls *libc.TLS, file uintptr, size int64) int32
	deleteFile   = func(tls *libc.TLS, vfs, name uintptr, flush int32) int32
)

// disks are the watched ones by their folders, and the open files of them by their addresses.
type disks struct {
	mu      sync.Mutex
	folders map[string]*disk
	files   map[uintptr]openedFile
	methods map[uintptr]uintptr // those of SQLite to those that record
	kept    []any               // the collector does not see what SQLite has
}

type openedFile struct {
	disk *disk
	name string
}

var watched = disks{folders: map[string]*disk{}, files: map[uintptr]openedFile{}, methods: map[uintptr]uintptr{}}

// watchDisk records what is written to the files in the folder of a disk that are opened from now on.
func watchDisk(d *disk) {
	install()
	watched.mu.Lock()
	defer watched.mu.Unlock()
	watched.folders[d.folder] = d
}

func unwatchDisk(d *disk) {
	watched.mu.Lock()
	defer watched.mu.Unlock()
	delete(watched.folders, d.folder)
}

// install replaces SQLite's default file system by one that does the same, and records what is written to watched folders.
var install = sync.OnceFunc(func() {
	tls := libc.NewTLS()
	base := sqlite3.Xsqlite3_vfs_find(tls, 0)
	recording := at[sqlite3.Tsqlite3_vfs](libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{}))))
	*recording = *at[sqlite3.Tsqlite3_vfs](base)
	open, remove := function[openFile](recording.FxOpen), function[deleteFile](recording.FxDelete)
	recording.FxDelete = pointer(func(tls *libc.TLS, _, name uintptr, flush int32) int32 {
		watched.deleted(libc.GoString(name))
		return remove(tls, base, name, flush)
	})
	recording.FxOpen = pointer(func(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
		rc := open(tls, base, name, file, flags, out)
		if f := at[sqlite3.Tsqlite3_file](file); rc == 0 && f.FpMethods != 0 && name != 0 {
			watched.opened(tls, libc.GoString(name), file, f)
		}
		return rc
	})
	recording.FzName, _ = libc.CString("recording")
	sqlite3.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(recording)), 1)
})

// opened has a file of a watched folder use methods that record.
func (d *disks) opened(tls *libc.TLS, path string, file uintptr, f *sqlite3.Tsqlite3_file) {
	d.mu.Lock()
	defer d.mu.Unlock()
	disk := d.folders[filepath.Dir(path)]
	if disk == nil {
		return
	}
	d.files[file] = openedFile{disk, filepath.Base(path)}
	if d.methods[f.FpMethods] == 0 {
		d.methods[f.FpMethods] = d.record(tls, f.FpMethods)
	}
	f.FpMethods = d.methods[f.FpMethods]
}

// deleted has a disk forget a file.
func (d *disks) deleted(path string) {
	d.mu.Lock()
	disk := d.folders[filepath.Dir(path)]
	d.mu.Unlock()
	if disk != nil {
		disk.mu.Lock()
		defer disk.mu.Unlock()
		delete(disk.files, filepath.Base(path))
	}
}

// record returns methods that do what others do, and record it. Nothing is flushed in earnest.
func (d *disks) record(tls *libc.TLS, methods uintptr) uintptr {
	address := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
	m := at[sqlite3.Tsqlite3_io_methods](address)
	*m = *at[sqlite3.Tsqlite3_io_methods](methods)
	write, truncate := function[writeFile](m.FxWrite), function[truncateFile](m.FxTruncate)
	m.FxWrite = pointer(func(tls *libc.TLS, file, data uintptr, size int32, offset int64) int32 {
		f, done := d.lock(file)
		defer done()
		f.disk.change(f.name, change{offset, append([]byte{}, unsafe.Slice(at[byte](data), size)...)})
		return write(tls, file, data, size, offset)
	})
	m.FxTruncate = pointer(func(tls *libc.TLS, file uintptr, size int64) int32 {
		f, done := d.lock(file)
		defer done()
		f.disk.change(f.name, change{at: size})
		return truncate(tls, file, size)
	})
	flush := func(_ *libc.TLS, file uintptr, _ int32) int32 {
		f, done := d.lock(file)
		defer done()
		f.disk.flush(f.name)
		return 0
	}
	m.FxSync = pointer(flush)
	return address
}

// lock returns an open file, with the lock of its disk.
func (d *disks) lock(file uintptr) (f openedFile, done func()) {
	d.mu.Lock()
	f = d.files[file]
	d.mu.Unlock()
	f.disk.mu.Lock()
	return f, f.disk.mu.Unlock
}

// at is what is at an address of SQLite's.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// function is the function at an address, pointer the address of a function that lives for ever.
func function[F any](address uintptr) F {
	return *(*F)(unsafe.Pointer(&struct{ uintptr }{address}))
}

func pointer[F any](f F) uintptr {
	keep := &struct{ f F }{f}
	watched.kept = append(watched.kept, keep)
	return *(*uintptr)(unsafe.Pointer(keep))
}
