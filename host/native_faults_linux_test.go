package host_test

import (
	"os"
	"runtime"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// recalling returns faults on a thread of their own that the next call does not ask the
// kernel for, as after many calls in a row.
func recalling(t *testing.T) *host.Faults {
	t.Helper()
	if !host.ThreadsTold() {
		testskip.Skip(t, "threads cannot be told apart here, so the kernel is asked twice for each call")
	}
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	f := new(host.Faults)
	for f.Ran() < 100*time.Millisecond || !settled(f) { // a young thread may be another
		f.Begin()
		f.Faulted()
	}
	return f
}

// settled makes a call without faults that did not have to ask.
func settled(f *host.Faults) bool {
	f.Begin()
	return !f.Faulted() && f.Recalled()
}

// fault makes the thread have a page fault.
func fault(t *testing.T) {
	t.Helper()
	page, err := unix.Mmap(-1, 0, os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
	if err != nil {
		t.Fatal(err)
	}
	page[0] = 1
	if err := unix.Munmap(page); err != nil {
		t.Fatal(err)
	}
}

// TestNative_asksOnce: on one thread the answer after a call is good for the next one, as
// long as nothing speaks against it.
func TestNative_asksOnce(t *testing.T) {
	t.Parallel()
	for name, disturb := range map[string]func(t *testing.T, f *host.Faults){
		"a fault in the call":              func(t *testing.T, f *host.Faults) { t.Helper(); f.Begin(); fault(t) },
		"a fault between the calls":        func(t *testing.T, f *host.Faults) { t.Helper(); fault(t); f.Begin() },
		"foreign code in the call":         func(_ *testing.T, f *host.Faults) { f.Begin(); f.Distrust() },
		"a thread that may have begun now": func(_ *testing.T, f *host.Faults) { f.Begin(); f.Age(24 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := recalling(t)
			disturb(t, f)
			if !f.Faulted() {
				t.Error("it goes unseen")
			}
			f.Begin()
			if f.Recalled() {
				t.Error("the next call relies on that answer")
			}
			f.Faulted()
			for tries := 0; !settled(f); tries++ {
				if tries > 100_000 {
					t.Fatal("the kernel is asked twice for ever")
				}
			}
		})
	}
}

// TestNative_asksAgain: another thread's count says nothing.
func TestNative_asksAgain(t *testing.T) {
	t.Parallel()
	f := recalling(t)
	moved, unseen := make(chan bool), make(chan bool)
	go func() { // on another thread, since this one is taken
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		f.Begin()
		moved <- !f.Recalled()
		fault(t)
		unseen <- !f.Faulted()
	}()
	if !<-moved {
		t.Error("a call relies on the count of another thread")
	}
	if <-unseen {
		t.Error("a fault goes unseen")
	}
	f.Begin()
	if f.Recalled() {
		t.Error("a call relies on the count of another thread")
	}
}
