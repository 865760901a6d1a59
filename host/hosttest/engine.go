package hosttest

import (
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/extismengine"
)

// Engine returns an engine by its name, for tests that run on both.
func Engine(name host.EngineName) host.Engine {
	if name == host.EngineExtism {
		return extismengine.New()
	}
	return nil // the native one
}
