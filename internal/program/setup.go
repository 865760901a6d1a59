package program

import (
	"errors"
	"io/fs"
	"os"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/llm"
)

// Setup is a config with what is opened for it. Several goroutines may use it once it is complete.
type Setup struct {
	*config.Config

	Links Links
	// Home is the open store, nil for none.
	Home *Home
	// Clients are the models of the config, once they are opened.
	Clients Models
	// ThreadTools are the tools of one thread, nil for none.
	ThreadTools func(thread string) agent.Tools
	// observe receives what modules ask of models; may be nil.
	observe llm.Observe
}

// Load reads a config file; with no path, mortise.yaml of the current folder.
func (l Links) Load(path string) (*Setup, error) {
	cfg, err := config.Load(path, l.names())
	return l.With(cfg), err
}

// Parse is [Links.Load] of a file that was read already.
func (l Links) Parse(path string, data []byte) (*Setup, error) {
	cfg, err := config.Parse(path, data, l.names())
	return l.With(cfg), err
}

// With is a config of which nothing is opened yet.
func (l Links) With(cfg *config.Config) *Setup { return &Setup{Config: cfg, Links: l} }

// LoadOr is [Links.Load], with another config if no file is named and the current folder has none.
func (l Links) LoadOr(path, other string) (*Setup, error) {
	if _, err := os.Stat(config.FileName); path != "" || !errors.Is(err, fs.ErrNotExist) {
		return l.Load(path)
	}
	cfg, err := config.Decode([]byte(other), l.names())
	return l.With(cfg), err
}

// Problems decodes a config without what is wrong in it, and returns all that is. Without a config that could be read the setup is nil.
func (l Links) Problems(data []byte) (*Setup, []config.Problem) {
	cfg, found := config.Problems(data, l.names())
	if cfg == nil {
		return nil, found
	}
	return l.With(cfg), found
}
