package host

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// threadFaults tells whether the thread that runs a call had a page fault in it. The
// kernel counts them for each thread, and is asked before the call and after it. Its
// answer after the call before is as good as one before this call, if the thread is the
// same: see same. What happened between the calls is then counted too, which costs a look
// and hides nothing.
type threadFaults struct {
	// before is the count to compare with, below zero when it is not known.
	before int64
	usage  unix.Rusage
	// thread is the one that gave the answer before, at a time. It is 0 when that answer
	// is of no use to the next call.
	thread uintptr
	at     time.Time
	// recalled tells that before is the answer after an earlier call.
	recalled bool
	// wary is how many calls ask twice, since one asked once in vain.
	wary int
}

// waryCalls is how many calls ask twice after one that found more faults than its own,
// or another thread.
const waryCalls = 64

// begin is called before the guest runs, on a thread that the goroutine keeps until
// faulted.
func (f *threadFaults) begin() {
	now := thread()
	if f.recalled = now != 0 && now == f.thread; f.recalled {
		return
	}
	f.thread = now
	f.before = f.count()
}

// distrust makes faulted say that there was a fault.
func (f *threadFaults) distrust() { f.before = -1 }

// faulted tells whether the thread has had a fault since begin, or may have had one.
func (f *threadFaults) faulted() bool {
	if f.before < 0 {
		f.thread = 0
		return true
	}
	count := f.count()
	faulted := count != f.before
	if f.thread == 0 {
		return faulted
	}
	now := time.Now()
	if f.recalled && (faulted || !f.same(now.Sub(f.at))) {
		faulted, f.wary = true, waryCalls
	}
	f.before, f.at = count, now
	if f.wary > 0 {
		f.wary--
		f.thread = 0
	}
	return faulted
}

// same tells whether the thread that was asked just now is the one that was asked some
// time ago, if both are called the same. Two threads that are alive are not, so another
// one has begun since, and cannot have run for longer than that. The factor is for
// clocks that do not go at the same speed.
func (f *threadFaults) same(ago time.Duration) bool {
	ran := time.Duration(f.usage.Utime.Nano() + f.usage.Stime.Nano())
	return ran > 2*ago
}

// count asks how many faults the thread has had, -1 when that is not known. The call
// cannot block, so the scheduler need not know of it.
func (f *threadFaults) count() int64 {
	_, _, errno := unix.RawSyscall(unix.SYS_GETRUSAGE, unix.RUSAGE_THREAD, uintptr(unsafe.Pointer(&f.usage)), 0)
	if errno != 0 {
		return -1
	}
	return f.usage.Minflt + f.usage.Majflt
}
