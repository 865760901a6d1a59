package hosttest

import (
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/extismengine"
)

// Names of the engines.
const (
	Native = "native"
	Extism = "extism"
)

// Engine returns an engine by its name, for tests that run on both.
func Engine(name string) host.Engine {
	if name == Extism {
		return extismengine.New()
	}
	return nil // the native one
}
