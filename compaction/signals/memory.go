package signals

import (
	"bytes"
	"io/fs"
	"math"
	"path"
	"runtime/debug"
	"runtime/metrics"
	"strconv"
	"strings"
)

// available is how many bytes the process may still take: the least of what its
// control groups, the machine and the runtime's own limit leave.
func available(root fs.FS) (int64, bool) {
	least := int64(math.MaxInt64)
	for _, left := range []func(fs.FS) (int64, bool){groups, machine, func(fs.FS) (int64, bool) { return ownLimit() }} {
		if n, ok := left(root); ok {
			least = min(least, max(n, 0))
		}
	}
	return least, least < math.MaxInt64
}

// groups is what the control groups of the process leave.
func groups(root fs.FS) (int64, bool) {
	own, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0, false
	}
	for line := range bytes.Lines(own) {
		// hierarchy:controllers:path; version 2 has 0 and no controllers.
		fields := strings.SplitN(strings.TrimSpace(string(line)), ":", 3)
		switch {
		case len(fields) != 3:
		case fields[0] == "0" && fields[1] == "":
			if n, ok := group(root, "sys/fs/cgroup", fields[2], "memory.max", "memory.current", "inactive_file"); ok {
				return n, true
			}
		case contains(fields[1], "memory"):
			return group(root, "sys/fs/cgroup/memory", fields[2], "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file")
		}
	}
	return 0, false
}

// unlimited is above what version 1 writes for no limit.
const unlimited = 1 << 60

// group is the least that a group and those above it leave. In a container the
// path may be that of the machine; then the top of what is mounted counts.
func group(root fs.FS, top, own, limitFile, usedFile, cacheKey string) (int64, bool) {
	least, ok := int64(math.MaxInt64), false
	for dir := path.Join(top, own); ; dir = path.Dir(dir) {
		limit, known := number(root, path.Join(dir, limitFile))
		used, knownToo := number(root, path.Join(dir, usedFile))
		if known && knownToo && limit < unlimited {
			least, ok = min(least, limit-used+stat(root, path.Join(dir, "memory.stat"), cacheKey)), true
		}
		if len(dir) <= len(top) {
			return least, ok
		}
	}
}

// machine is what the machine has left.
func machine(root fs.FS) (int64, bool) {
	n := stat(root, "proc/meminfo", "MemAvailable:")
	return n << 10, n > 0
}

// ownLimit is what the limit of the Go runtime leaves, if one is set.
func ownLimit() (int64, bool) {
	limit := debug.SetMemoryLimit(-1)
	if limit == math.MaxInt64 {
		return 0, false
	}
	s := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	metrics.Read(s)
	used := int64(min(s[0].Value.Uint64()-s[1].Value.Uint64(), math.MaxInt64))
	return limit - used, true
}

// number reads a file with one number. "max" is none.
func number(root fs.FS, name string) (int64, bool) {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0, false
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(b)), 10, 64)
	return n, err == nil
}

// stat reads a number behind a word at the beginning of a line, 0 when it is not
// there.
func stat(root fs.FS, name, word string) int64 {
	b, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	for line := range bytes.Lines(b) {
		fields := strings.Fields(string(line))
		if len(fields) >= 2 && fields[0] == word {
			n, err := strconv.ParseInt(fields[1], 10, 64)
			if err != nil || n < 0 {
				return 0
			}
			return n
		}
	}
	return 0
}

func contains(list, word string) bool {
	for w := range strings.SplitSeq(list, ",") {
		if w == word {
			return true
		}
	}
	return false
}
