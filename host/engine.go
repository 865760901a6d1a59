package host

import (
	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/compile"
)

// Engine runs guests: the native one, or that of package extismengine.
type Engine = compile.Engine

// Capability is what an operator grants a module beyond computing. The packages below host/capability have them.
type Capability = engine.Capability

// ErrorCode is what an import of "mortise:host/1" returns when it could not do what the guest asked for.
type ErrorCode = engine.ErrorCode

// Codes that a guest may see.
const (
	CodeDenied   = engine.CodeDenied
	CodeQuota    = engine.CodeQuota
	CodeTooLarge = engine.CodeTooLarge
	CodeInvalid  = engine.CodeInvalid
	CodeFailed   = engine.CodeFailed
	CodeTimeout  = engine.CodeTimeout
)

// ValueType is the type of a parameter or a result of a [Function].
type ValueType = engine.ValueType

// Value types.
const (
	I32 = engine.I32
	I64 = engine.I64
	F32 = engine.F32
	F64 = engine.F64
)

// TrapKind is the way in which a guest broke or was stopped.
type TrapKind = engine.TrapKind

// Kinds of traps.
const (
	// TrapFault is a fault in the guest: unreachable, out of bounds and so on.
	TrapFault = engine.TrapFault
	// TrapDeadline means that the guest ran longer than it may.
	TrapDeadline = engine.TrapDeadline
	// TrapCancelled means that the caller, or Close, ended the call.
	TrapCancelled = engine.TrapCancelled
	// TrapExit means that the guest ended itself with a code other than zero.
	TrapExit = engine.TrapExit
	// TrapFuel means that the guest executed more than Limits.Fuel allows.
	TrapFuel = engine.TrapFuel
	// TrapOutput means an output above Limits.OutputBytes.
	TrapOutput = engine.TrapOutput
	// TrapMemory is a fault or exit of a guest that had used up most of its
	// memory, which is the likely cause.
	TrapMemory = engine.TrapMemory
	// TrapDenied means that the guest asked for what was not granted, by a function
	// that has no other way to report it.
	TrapDenied = engine.TrapDenied
	// TrapInit means that no instance could be made: the start function or the
	// initialisation of the guest's runtime failed or took too long.
	TrapInit = engine.TrapInit
)

// Replacement is why an instance was not used again. When its guest broke or was stopped it is
// the [TrapKind], else one of the constants.
type Replacement = engine.Replacement

// Reasons other than traps.
const (
	// ReplacedMemory means that a call has added more memory than is given back after it.
	ReplacedMemory = engine.ReplacedMemory
	// ReplacedKernel means that a call kept more than 4 MiB in blocks.
	ReplacedKernel = engine.ReplacedKernel
	// ReplacedState means that memory and globals are not all the state of the module.
	ReplacedState = engine.ReplacedState
	// ReplacedFiles means that a call opened, closed or moved a file descriptor.
	ReplacedFiles = engine.ReplacedFiles
	// ReplacedExit means that a call ended with exit code 0.
	ReplacedExit = engine.ReplacedExit
	// ReplacedAborted means that a function of the embedder ended its goroutine.
	ReplacedAborted = engine.ReplacedAborted
)

// CompileProcess makes a host compile each module in a child process first, see [Config].Compile. The zero value bounds
// it to 2 GiB.
type CompileProcess = compile.Process

// CompileChild returns at once, except in a process that a [CompileProcess] has started: there it compiles, and ends the
// process. Call it first in main, before anything is read from the environment or from files.
func CompileChild() { compile.Child() }

// CompileChildCalled reports whether [CompileChild] was called in this process, so that Config.Compile can be set.
func CompileChildCalled() bool { return compile.ChildCalled() }

// Errors of an engine, with errors.Is.
var (
	// ErrClosed means that the host or the module was closed.
	ErrClosed = engine.ErrClosed
	// ErrEngine means a fault of the engine, not of the guest.
	ErrEngine = engine.ErrEngine
	// ErrQuota means that a quota of a grant is used up.
	ErrQuota = engine.ErrQuota
)
