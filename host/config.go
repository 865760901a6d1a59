package host

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/compile"
	"github.com/mortise-dev/mortise/internal/engine/native"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// Config constructs a [Host]. The zero Config is valid.
type Config struct {
	// Engine runs the guests. Nil is the native one; package extismengine has the other.
	Engine Engine
	// CacheDir keeps compiled code between processes. It is made when it is not
	// there. Write access to it is the right to run code in this process, so a folder
	// that others can write to is refused. Empty means no cache on disk.
	CacheDir string
	// Compile makes the host compile in child processes, so that a module which takes gigabytes to compile does not end
	// this one. It needs CacheDir. Nil compiles in this process.
	Compile *CompileProcess
	// Logger gets warnings of the host and, where granted, the logs of guests.
	// Nil discards them.
	Logger *slog.Logger
	// Limits are the defaults of modules whose Spec leaves a limit at zero.
	Limits Limits
	// OnCompile is called before and after a module is compiled, so that a program
	// can show why it waits. It is called by the goroutine that loads. Nil is fine.
	OnCompile func(CompileInfo)
	// OnSwap is called when a module was swapped, and when the new generation settled
	// or was rolled back. It is called by the goroutine whose swap or call brought
	// it about, and must not wait for that module. Nil is fine.
	OnSwap func(SwapEvent)
}

// CompileInfo describes one compilation.
type CompileInfo struct {
	// Name of the module.
	Name string
	// Size of the binary in bytes.
	Size int
	// Cached is a hint: the cache folder has probably compiled this binary before.
	Cached bool
	// Done is false before the compilation and true after it.
	Done bool
	// Duration and Err are set when Done is.
	Duration time.Duration
	Err      error
}

// withDefaults returns c with its zero fields filled in, or names the field that is
// wrong.
func (c Config) withDefaults() (Config, error) {
	if c.Engine == nil {
		c.Engine = native.Maker{}
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.OnCompile == nil {
		c.OnCompile = func(CompileInfo) {}
	}
	if c.OnSwap == nil {
		c.OnSwap = func(SwapEvent) {}
	}
	if err := c.Compile.Check(c.CacheDir); err != nil {
		return c, err
	}
	if _, err := c.Limits.withDefaults(Limits{}); err != nil {
		return c, fmt.Errorf("host: config: %w", err)
	}
	return c, nil
}

// Engine runs guests: the native one, or that of package extismengine.
type Engine = compile.Engine

// Capability is what an operator grants a module beyond computing. The packages below host/capability have them.
type Capability = engine.Capability

// ValueType is the type of a parameter or a result of a [Function].
type ValueType = engine.ValueType

// Value types.
const (
	I32 = wasm.I32
	I64 = wasm.I64
	F32 = wasm.F32
	F64 = wasm.F64
)

// Reason is why a call ended without success, or why its instance was not used again.
type Reason = engine.Reason

// Reasons. Those of traps are ways in which a guest broke or was stopped; the others are why an instance was replaced
// after a call that may have gone well.
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
