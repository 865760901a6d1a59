//go:build !linux

package host_test

import "time"

var started = time.Now()

// cpuTime is the wall clock where the processor's cannot be read.
func cpuTime() time.Duration { return time.Since(started) }
