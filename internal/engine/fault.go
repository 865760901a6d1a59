package engine

import (
	"errors"
	"fmt"
	"strings"
	"time"
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

// TrapKind is the way in which a guest broke or was stopped.
type TrapKind string

// Kinds of traps.
const (
	// TrapFault is a fault in the guest: unreachable, out of bounds and so on.
	TrapFault TrapKind = "trap"
	// TrapDeadline means that the guest ran longer than it may.
	TrapDeadline TrapKind = "deadline"
	// TrapCancelled means that the caller, or Close, ended the call.
	TrapCancelled TrapKind = "cancelled"
	// TrapExit means that the guest ended itself with a code other than zero.
	TrapExit TrapKind = "exit"
	// TrapFuel means that the guest executed more than Limits.Fuel allows.
	TrapFuel TrapKind = "fuel"
	// TrapOutput means an output above Limits.OutputBytes.
	TrapOutput TrapKind = "output_too_large"
	// TrapMemory is a fault or exit of a guest that had used up most of its
	// memory, which is the likely cause.
	TrapMemory TrapKind = "memory"
	// TrapDenied means that the guest asked for what was not granted, by a function
	// that has no other way to say so.
	TrapDenied TrapKind = "denied"
	// TrapInit means that no instance could be made: the start function or the
	// initialisation of the guest's runtime failed or took too long.
	TrapInit TrapKind = "init"
)

// Fault is a trap before it knows its module and export.
type Fault struct { //nolint:errname // host.TrapError is the error that a caller sees
	Kind   TrapKind
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

// FirstLine returns a text up to its first line break.
func FirstLine(s string) string {
	line, _, _ := strings.Cut(s, "\n")
	return line
}
