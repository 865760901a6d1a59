package compile

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"syscall"

	"golang.org/x/sys/unix"
)

// childAttributes keeps an interrupt of the terminal from a child: the host ends its children.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }

// limitChild bounds what this process may still take: bytes of memory, and seconds of processor time, 0 for any.
func limitChild(memory, seconds int64) error {
	limits := map[int]int64{unix.RLIMIT_AS: addresses() + memory, unix.RLIMIT_CORE: 0}
	if seconds > 0 {
		limits[unix.RLIMIT_CPU] = seconds
	}
	for what, most := range limits {
		var old unix.Rlimit
		if err := unix.Getrlimit(what, &old); err != nil {
			return fmt.Errorf("getrlimit: %w", err)
		}
		least := min(uint64(most), old.Max) // not negative
		if err := unix.Setrlimit(what, &unix.Rlimit{Cur: least, Max: least}); err != nil {
			return fmt.Errorf("setrlimit: %w", err)
		}
	}
	return nil
}

// addresses is how many bytes of addresses this process has reserved, most of which take no memory.
func addresses() int64 {
	const usual = 4 << 30
	statm, err := os.ReadFile("/proc/self/statm")
	first, _, _ := bytes.Cut(statm, []byte(" "))
	pages, wrong := strconv.ParseInt(string(first), 10, 64)
	if err != nil || wrong != nil {
		return usual // there is no /proc
	}
	return pages * int64(os.Getpagesize())
}
