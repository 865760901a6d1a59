package host

import (
	"runtime"
	"sync"

	"golang.org/x/sys/unix"
)

// threadBase returns the base of the segment FS, where a thread keeps what is its own.
// The processor must have the instruction for it, and the kernel allow it.
func threadBase() uintptr

// What tells whether threadBase may be called: an entry of the auxiliary vector
// (getauxval(3)), and a bit of it (fsgsbase.rst in the kernel's documentation of x86).
const (
	auxHwcap2     = 26
	hwcapFSGSBase = 1 << 1
)

// threadsTold tells whether threadBase may be called and is another one on another thread.
var threadsTold = sync.OnceValue(func() bool { //nolint:gochecknoglobals // what the machine can do
	auxv, err := unix.Auxv()
	if err != nil {
		return false
	}
	for _, entry := range auxv {
		if entry[0] == auxHwcap2 {
			return entry[1]&hwcapFSGSBase != 0 && basesDiffer()
		}
	}
	return false
})

func basesDiffer() bool {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	here, other := threadBase(), make(chan uintptr)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		other <- threadBase()
	}()
	there := <-other
	return here != 0 && there != 0 && here != there && here == threadBase()
}

// thread returns what the calling thread is called, or 0 where that is not known. No
// other thread that is alive is called the same; one that begins later may be.
func thread() uintptr {
	if !threadsTold() {
		return 0
	}
	return threadBase()
}
