package compile

import (
	"log/slog"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Engine is one of the engines that run guests: the native one, or that of package extismengine.
type Engine interface {
	// Name returns the name in statistics, logs and the folder of compiled code.
	Name() string
	// Open makes the engine of a host.
	Open(s Setup) engine.Engine
}

// Setup is what a host gives its engine.
type Setup struct {
	// Cache is nil without a folder.
	Cache *DiskCache
	// Child is nil when the process compiles by itself.
	Child  *Process
	Logger *slog.Logger
}
