package native

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadFaults reports whether the thread that runs a call had a page fault in it. The kernel counts faults for each
// thread, and is asked before the call and after it. The goroutine stays on its thread in between.
type threadFaults struct {
	// before is the count before the call, below zero when it is not known.
	before int64
	usage  unix.Rusage
}

// begin is called before the guest runs.
func (f *threadFaults) begin() { f.before = f.count() }

// distrust makes faulted report a fault.
func (f *threadFaults) distrust() { f.before = -1 }

// faulted reports whether the thread has had a fault since begin, or may have had one.
func (f *threadFaults) faulted() bool { return f.before < 0 || f.count() != f.before }

// count returns how many faults the thread has had, -1 when that is not known. The call
// cannot block, so the scheduler need not know of it.
func (f *threadFaults) count() int64 {
	_, _, errno := unix.RawSyscall(unix.SYS_GETRUSAGE, unix.RUSAGE_THREAD, uintptr(unsafe.Pointer(&f.usage)), 0)
	if errno != 0 {
		return -1
	}
	return f.usage.Minflt + f.usage.Majflt
}
