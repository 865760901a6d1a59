package host_test

import (
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime is what this process has used of its processors: what a call costs, also
// on other threads, and also on a machine where others work.
func cpuTime() time.Duration {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &ts); err != nil {
		panic(err)
	}
	return time.Duration(ts.Nano())
}
