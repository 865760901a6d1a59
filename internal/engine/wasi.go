package engine

import (
	"fmt"
	"slices"
	"strings"
)

// maxSubscriptions is how many a guest may poll at once. A call with a million of
// them takes the engine tens of milliseconds, in which it cannot be stopped.
const maxSubscriptions = 4096

// MaxPath bounds a path of a guest, in bytes.
const MaxPath = 4096

// errnoNameTooLong is WASI's ENAMETOOLONG.
const errnoNameTooLong = 37

// WasiLength is a parameter of a WASI function by which the work of a call grows.
type WasiLength struct {
	// Param is its index.
	Param int
	// Size of an entry in bytes: memory bounds how many there can be.
	Size int
	// Cost in units of fuel, of each so many entries.
	Cost, Each int
	// Most is how many there may be, if they are bounded.
	Most int
	// Errno is what the guest gets when there are more. Without one its call ends.
	Errno uint64
}

// WasiLengths returns the lengths of a WASI function, none for one that takes the same time
// whatever its parameters are. The engine copies and cleans a path before it looks at the
// descriptor, so the length of a path is bounded here too, and not only by a mount.
func WasiLengths(name string) []WasiLength {
	path := func(param int) WasiLength {
		return WasiLength{Param: param, Size: 1, Cost: 1, Each: 1, Most: MaxPath, Errno: errnoNameTooLong}
	}
	buffer := func(param int) WasiLength { return WasiLength{Param: param, Size: 1, Cost: 1, Each: 64} }
	switch name {
	case "fd_read", "fd_write", "fd_pread", "fd_pwrite", "sock_recv", "sock_send":
		return []WasiLength{{Param: 2, Size: 8, Cost: 1, Each: 1}}
	case "poll_oneoff":
		return []WasiLength{{Param: 2, Size: 48, Cost: 4, Each: 1, Most: maxSubscriptions}}
	case "random_get":
		return []WasiLength{buffer(1)}
	case "fd_readdir":
		return []WasiLength{buffer(2)}
	case "fd_prestat_dir_name", "path_create_directory", "path_remove_directory", "path_unlink_file":
		return []WasiLength{path(2)}
	case "path_filestat_get", "path_filestat_set_times", "path_open":
		return []WasiLength{path(3)}
	case "path_readlink":
		return []WasiLength{path(2), buffer(4)}
	case "path_rename":
		return []WasiLength{path(2), path(5)}
	case "path_link":
		return []WasiLength{path(3), path(6)}
	case "path_symlink":
		return []WasiLength{path(1), path(4)}
	}
	return nil
}

// TooMany is the fault of a guest that asks for more than it may.
func (l WasiLength) TooMany(name string, n uint64, most int) *Fault {
	what := "entries"
	if l.Size == 1 {
		what = "bytes"
	}
	return &Fault{Kind: TrapFault, Detail: fmt.Sprintf("%s: %d %s, and %d are allowed", name, n, what, most)}
}

// ReachesFiles reports whether a WASI function may wait for a disk.
func ReachesFiles(name string) bool {
	return strings.HasPrefix(name, "fd_") || strings.HasPrefix(name, "path_")
}

// MovesDescriptors reports whether a WASI function closes or moves a descriptor.
func MovesDescriptors(name string) bool {
	return slices.Contains([]string{"fd_close", "fd_renumber"}, name)
}
