package host_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// processTime is the time that all threads of the process have run. What the
// garbage collector does beside a call is in it, and what other processes do is not.
func processTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
