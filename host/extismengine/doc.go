// Package extismengine runs guests on github.com/extism/go-sdk, the engine that the native one is compared with.
// A program that does not import it does not compile go-sdk.
//
// # Concurrency
//
// What New returns may be used by any number of hosts. The log level of go-sdk is one for the process: this engine sets
// it to debug and filters by itself, so other users of go-sdk in the process should set a logger on their plugins.
// Guests' messages below debug do not arrive.
//
// # Errors
//
// They are those of package host.
package extismengine

import (
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/engine/extism"
)

// New returns the engine for host.Config.
func New() host.Engine { return extism.Maker{} }
