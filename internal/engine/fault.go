package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/tetratelabs/wazero/sys"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// Errors that engines and hosts share.
var (
	// ErrClosed means that the host or the module was closed.
	ErrClosed = errors.New("closed")
	// ErrEngine means a fault of the engine, not of the guest.
	ErrEngine = errors.New("engine fault")
	// ErrQuota means that a quota of a grant is used up.
	ErrQuota = errors.New("quota exceeded")
)

// Reason is why a call ended without success, or why its instance was not used again.
type Reason string

// Reasons. Those of traps are ways in which a guest broke or was stopped; the others are why an instance was replaced
// after a call that may have gone well.
const (
	// TrapFault is a fault in the guest: unreachable, out of bounds and so on.
	TrapFault Reason = "trap"
	// TrapDeadline means that the guest ran longer than it may.
	TrapDeadline Reason = "deadline"
	// TrapCancelled means that the caller, or Close, ended the call.
	TrapCancelled Reason = "cancelled"
	// TrapExit means that the guest ended itself with a code other than zero.
	TrapExit Reason = "exit"
	// TrapFuel means that the guest executed more than Limits.Fuel allows.
	TrapFuel Reason = "fuel"
	// TrapOutput means an output above Limits.OutputBytes.
	TrapOutput Reason = "output_too_large"
	// TrapMemory is a fault or exit of a guest that had used up most of its
	// memory, which is the likely cause.
	TrapMemory Reason = "memory"
	// TrapDenied means that the guest asked for what was not granted, by a function
	// that has no other way to say so.
	TrapDenied Reason = "denied"
	// TrapInit means that no instance could be made: the start function or the
	// initialisation of the guest's runtime failed or took too long.
	TrapInit Reason = "init"

	// ReplacedMemory means that a call has added more memory than is given back after it: more than
	// 64 MiB (4 MiB where the system is not Linux), or all that the limit allows. What it adds below that costs no
	// instance. On the Extism engine it means that three quarters of the limit are in use.
	ReplacedMemory Reason = "grown_memory"
	// ReplacedKernel means that a call kept more than 4 MiB in blocks.
	ReplacedKernel Reason = "grown_blocks"
	// ReplacedState means that memory and globals are not all the state of the module: it changes
	// its tables, has links, or is not metered. Such an instance serves one call.
	ReplacedState Reason = "other_state"
	// ReplacedFiles means that a call opened, closed or moved a file descriptor.
	ReplacedFiles Reason = "files"
	// ReplacedExit means that a call ended with exit code 0.
	ReplacedExit Reason = "exit"
	// ReplacedAborted means that a function of the embedder ended its goroutine.
	ReplacedAborted Reason = "aborted"
)

// Fault is a trap before it knows its module and export.
type Fault struct { //nolint:errname // host.TrapError is the error that a caller sees
	Kind   Reason
	Detail string
	Code   uint32
	Err    error
	// Late is the host call in which the guest was when it had to end, if that came back late.
	Late *Overrun
}

func (f *Fault) Error() string { return string(f.Kind) + ": " + f.Detail }

func (f *Fault) Unwrap() error { return f.Err }

// lateAfter is how long a host call may continue after the time of its call was up before it
// counts as late. One that ends with its context takes far less; a busy machine may take more.
const lateAfter = 100 * time.Millisecond

// Overrun is a host call that came back late.
type Overrun struct {
	// Name is that of the import.
	Name string
	// By is how long it continued after the call had to end.
	By time.Duration
}

// OverrunOf is the overrun of a host call that began at a time, came back at another, and
// whose call had to end in between or before, nil if it was not late. All are counted from
// the same moment.
func OverrunOf(name string, began, ended, back time.Duration) *Overrun {
	by := back - max(began, ended)
	if name == "" || by <= lateAfter {
		return nil
	}
	return &Overrun{Name: name, By: by}
}

// OutputFault is the trap of a guest whose output is too long.
func OutputFault(n, limit int) *Fault {
	return &Fault{Kind: TrapOutput, Detail: fmt.Sprintf("%d bytes of output, %d are allowed", n, limit)}
}

// TrapDetail shortens an error of wazero to its cause and the innermost frames. own makes a
// frame one of the guest's binary, or leaves it out; nil is for a binary that runs as it is.
func TrapDetail(err error, own func(frame string) (string, bool)) string {
	text := err.Error()
	if i := strings.Index(text, "wasm error: "); i >= 0 {
		text = text[i+len("wasm error: "):]
	}
	cause, stack, found := strings.Cut(text, "\nwasm stack trace:\n")
	cause = strings.TrimSuffix(FirstLine(cause), " (recovered by wazero)")
	if !found {
		return Clean(cause, MaxDetail)
	}
	var frames []string
	for line := range strings.Lines(stack) {
		line = strings.TrimSpace(line)
		if line == "" || len(frames) == 4 {
			break
		}
		if own != nil {
			var shown bool
			if line, shown = own(line); !shown {
				continue
			}
		}
		frames = append(frames, Clean(line, MaxName))
	}
	return Clean(cause, MaxDetail/2) + " at " + strings.Join(frames, " < ")
}

// Broken is the fault of a guest that an error of wazero ended. Its largest memory has some bytes, of so many pages that it may have.
func Broken(err error, own func(frame string) (string, bool), size, pages int) *Fault {
	f := &Fault{Kind: TrapFault, Detail: TrapDetail(err, own)}
	if exit, ok := errors.AsType[*sys.ExitError](err); ok {
		f = &Fault{Kind: TrapExit, Detail: fmt.Sprintf("exit code %d", exit.ExitCode()), Code: exit.ExitCode()}
	}
	if size > pages*wasm.PageSize/4*3 {
		f.Kind = TrapMemory
		f.Detail += fmt.Sprintf("; %d of %d bytes of memory are in use", size, pages*wasm.PageSize)
	}
	return f
}

// Recovered is deferred, and makes a fault of the engine of a panic.
func Recovered(err *error, what string) { //nolint:gocritic // it sets the result of the function that defers it
	if r := recover(); r != nil {
		*err = fmt.Errorf("%s: %w: panicked: %s", what, ErrEngine, Clean(fmt.Sprint(r), MaxDetail))
	}
}

// FirstLine returns a text up to its first line break.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
