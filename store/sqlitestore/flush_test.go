package sqlitestore_test

import (
	"sync"
	"sync/atomic"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// flushes counts how often SQLite asked for a file to be on the disk, once countFlushes
// was called.
var flushes atomic.Int64

// Functions that SQLite finds in its tables.
type (
	openFile = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, out uintptr) int32
	syncFile = func(tls *libc.TLS, file uintptr, flags int32) int32
)

// countFlushes puts a file system in place of SQLite's default one, which does the same and
// counts. Files that are open already are not counted.
var countFlushes = sync.OnceFunc(func() {
	tls := libc.NewTLS()
	base := sqlite3.Xsqlite3_vfs_find(tls, 0)
	counting := at[sqlite3.Tsqlite3_vfs](libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_vfs{}))))
	*counting = *at[sqlite3.Tsqlite3_vfs](base)
	open := function[openFile](counting.FxOpen)
	var mu sync.Mutex
	methods := map[uintptr]uintptr{} // those of SQLite to those that count
	counting.FxOpen = pointer(func(tls *libc.TLS, _, name, file uintptr, flags int32, out uintptr) int32 {
		rc := open(tls, base, name, file, flags, out)
		f := at[sqlite3.Tsqlite3_file](file)
		if rc != 0 || f.FpMethods == 0 {
			return rc
		}
		mu.Lock()
		defer mu.Unlock()
		if methods[f.FpMethods] == 0 {
			copied := libc.Xmalloc(tls, libc.Tsize_t(unsafe.Sizeof(sqlite3.Tsqlite3_io_methods{})))
			*at[sqlite3.Tsqlite3_io_methods](copied) = *at[sqlite3.Tsqlite3_io_methods](f.FpMethods)
			sync := function[syncFile](at[sqlite3.Tsqlite3_io_methods](copied).FxSync)
			at[sqlite3.Tsqlite3_io_methods](copied).FxSync = pointer(func(tls *libc.TLS, file uintptr, flags int32) int32 {
				flushes.Add(1)
				return sync(tls, file, flags)
			})
			methods[f.FpMethods] = copied
		}
		f.FpMethods = methods[f.FpMethods]
		return rc
	})
	counting.FzName, _ = libc.CString("counting")
	sqlite3.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(counting)), 1)
})

// at is what lies at an address of SQLite's.
func at[T any](address uintptr) *T { return *(**T)(unsafe.Pointer(&address)) }

// function is the function at an address, pointer the address of a function that lives for ever.
func function[F any](address uintptr) F {
	return *(*F)(unsafe.Pointer(&struct{ uintptr }{address}))
}

func pointer[F any](f F) uintptr {
	keep := &struct{ f F }{f}
	kept = append(kept, keep)
	return *(*uintptr)(unsafe.Pointer(keep))
}

var kept []any // from the collector, which does not see what SQLite has
