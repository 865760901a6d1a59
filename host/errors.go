package host

import (
	"errors"
	"fmt"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Errors to branch on, with errors.Is.
var (
	// ErrClosed means that the host or the module was closed.
	ErrClosed = engine.ErrClosed
	// ErrEngine means a fault of the engine, not of the guest.
	ErrEngine = engine.ErrEngine
	// ErrQuota means that a quota of a grant is used up.
	ErrQuota = engine.ErrQuota
	// ErrRetired means that another generation replaced the one that was
	// called.
	ErrRetired = engine.ErrRetired
	// ErrSessionLost means that the instance of a session broke or was stopped.
	ErrSessionLost = errors.New("session lost")
	// ErrNotGranted means that the operator did not grant what was asked for.
	ErrNotGranted = errors.New("not granted")
	// ErrNoExport means a call of an export that the module does not have, or
	// that cannot be called because it takes parameters.
	ErrNoExport = errors.New("no such export")
	// ErrInputTooLarge means an input above Limits.InputBytes.
	ErrInputTooLarge = errors.New("input too large")
	// ErrReentry means a call of a module from code that its own guest called. It
	// would wait for itself.
	ErrReentry = errors.New("a module cannot call itself")
	// ErrNotFound means that there is no file at Spec.Path.
	ErrNotFound = errors.New("module not found")
	// ErrUnreadable means that Spec.Path is there and cannot be read as a file.
	ErrUnreadable = errors.New("module unreadable")
	// ErrChecksum means that the binary is not the one that Spec.SHA256 names.
	ErrChecksum = errors.New("checksum mismatch")
	// ErrNotCore means bytes that are not a complete core module.
	ErrNotCore = errors.New("not a core module")
	// ErrImport means that the module needs something that is not offered.
	ErrImport = errors.New("import not offered")
	// ErrExport means that an export of Spec.Require is missing or has another
	// signature.
	ErrExport = errors.New("required export missing")
	// ErrLimit means that the module asks for more than its limits before it
	// has run.
	ErrLimit = errors.New("limit exceeded")
	// ErrInvalid means that the engine refuses the code of the module.
	ErrInvalid = errors.New("invalid module")
)

// GuestError is a refusal: the guest ran to its end and said no.
type GuestError struct {
	Module, Export string
	// Code is what the export returned. It is zero when the guest only set a text.
	Code uint32
	// Message is the guest's text, shortened and escaped. It may be empty.
	Message string
}

// Error implements error.
func (e *GuestError) Error() string {
	if e.Message == "" {
		return fmt.Sprintf("host: module %q export %q: refused with code %d", e.Module, e.Export, e.Code)
	}
	return fmt.Sprintf("host: module %q export %q: refused with code %d: %s", e.Module, e.Export, e.Code, e.Message)
}

// TrapError reports that a guest broke or was stopped. Its instance is gone.
type TrapError struct {
	// Export is empty when Kind is [TrapInit].
	Module, Export string
	Kind           Reason
	// Detail describes what happened and where, and ends with what the guest wrote
	// to stderr. Shortened and escaped.
	Detail string
	// ExitCode belongs to [TrapExit].
	ExitCode uint32
	// Err is context.Canceled or context.DeadlineExceeded when a context ended
	// the call, [ErrClosed] when Close did, else nil.
	Err error
}

// Error implements error.
func (e *TrapError) Error() string {
	at := fmt.Sprintf("host: module %q", e.Module)
	if e.Export != "" {
		at += fmt.Sprintf(" export %q", e.Export)
	}
	if e.Detail == "" {
		return at + ": " + string(e.Kind)
	}
	return at + ": " + string(e.Kind) + ": " + e.Detail
}

// Unwrap returns Err.
func (e *TrapError) Unwrap() error { return e.Err }

// LoadError is why a module was not loaded, and what to do about it.
type LoadError struct {
	Module string
	// Path is empty for a module given as bytes.
	Path string
	// Problem continues a sentence whose subject is the module.
	Problem string
	// Hint is a hint: what to do about it. Settings are the fields that it names, such as
	// Limits.MemoryPages, for a program whose users know them by other names.
	Hint     string
	Settings []string
	// Err is one of the package's errors, or wraps one.
	Err error
}

// Error implements error.
func (e *LoadError) Error() string {
	at := fmt.Sprintf("host: module %q", e.Module)
	if e.Path != "" {
		at += fmt.Sprintf(" (%s)", e.Path)
	}
	if e.Hint == "" {
		return at + " " + e.Problem
	}
	return at + " " + e.Problem + "; " + e.Hint
}

// Unwrap returns Err.
func (e *LoadError) Unwrap() error { return e.Err }
