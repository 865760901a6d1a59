package host

import (
	"fmt"
	"slices"
	"strings"
)

// maxSubscriptions is how many a guest may poll at once. A call with a million of
// them takes the engine tens of milliseconds, in which it cannot be stopped.
const maxSubscriptions = 4096

// errnoNameTooLong is WASI's ENAMETOOLONG.
const errnoNameTooLong = 37

// wasiLength is a parameter of a WASI function by which the work of a call grows.
type wasiLength struct {
	// param is its index.
	param int
	// size of an entry in bytes: memory bounds how many there can be.
	size int
	// cost in units of fuel, of each so many entries.
	cost, each int
	// most is how many there may be, if they are bounded.
	most int
	// errno is what the guest gets when there are more. Without one its call ends.
	errno uint64
}

// wasiLengths returns the lengths of a WASI function, none for one that takes the same time
// whatever its parameters are. The engine copies and cleans a path before it looks at the
// descriptor, so the length of a path is bounded here too, and not only by a mount.
func wasiLengths(name string) []wasiLength {
	path := func(param int) wasiLength {
		return wasiLength{param: param, size: 1, cost: 1, each: 1, most: maxPath, errno: errnoNameTooLong}
	}
	buffer := func(param int) wasiLength { return wasiLength{param: param, size: 1, cost: 1, each: 64} }
	switch name {
	case "fd_read", "fd_write", "fd_pread", "fd_pwrite", "sock_recv", "sock_send":
		return []wasiLength{{param: 2, size: 8, cost: 1, each: 1}}
	case "poll_oneoff":
		return []wasiLength{{param: 2, size: 48, cost: 4, each: 1, most: maxSubscriptions}}
	case "random_get":
		return []wasiLength{buffer(1)}
	case "fd_readdir":
		return []wasiLength{buffer(2)}
	case "fd_prestat_dir_name", "path_create_directory", "path_remove_directory", "path_unlink_file":
		return []wasiLength{path(2)}
	case "path_filestat_get", "path_filestat_set_times", "path_open":
		return []wasiLength{path(3)}
	case "path_readlink":
		return []wasiLength{path(2), buffer(4)}
	case "path_rename":
		return []wasiLength{path(2), path(5)}
	case "path_link":
		return []wasiLength{path(3), path(6)}
	case "path_symlink":
		return []wasiLength{path(1), path(4)}
	}
	return nil
}

// tooMany is the fault of a guest that asks for more than it may.
func (l wasiLength) tooMany(name string, n uint64, most int) *fault {
	what := "entries"
	if l.size == 1 {
		what = "bytes"
	}
	return &fault{kind: TrapFault, detail: fmt.Sprintf("%s: %d %s, and %d are allowed", name, n, what, most)}
}

// reachesFiles reports whether a WASI function may wait for a disk.
func reachesFiles(name string) bool {
	return strings.HasPrefix(name, "fd_") || strings.HasPrefix(name, "path_")
}

// movesDescriptors reports whether a WASI function closes or moves a descriptor.
func movesDescriptors(name string) bool {
	return slices.Contains([]string{"fd_close", "fd_renumber"}, name)
}
