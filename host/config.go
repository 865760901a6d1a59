package host

import (
	"fmt"
	"log/slog"
	"time"

	"github.com/mortise-dev/mortise/internal/engine/native"
)

// EngineName names the code that runs guests.
type EngineName string

// Engines.
const (
	// EngineNative runs metered guests on wazero directly. It is the default.
	EngineNative EngineName = "native"
	// EngineExtism is github.com/extism/go-sdk on wazero, which the native engine is compared with: package
	// extismengine.
	EngineExtism EngineName = "extism"
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
