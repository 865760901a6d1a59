package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/kv"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/store"
)

// Links are the parts that a program chooses for its command line. This package imports no client of a provider or of a database: a program
// that leaves one out is built without it. Package links has all of them.
type Links struct {
	// Providers are those that models of the config may name.
	Providers []Provider
	// OpenStore opens the store of a path or a URL. It creates no store if only an existing one will do: what is missing is an
	// fs.ErrNotExist then. Its errors have no credentials.
	OpenStore func(ctx context.Context, name string, existing bool, logger *slog.Logger) (Store, error)
	// OpenKV opens the file of a key-value space that a plugin is granted. Nil: the config may name spaces in memory only.
	OpenKV func(ctx context.Context, path string) (KV, error)
	// Engines are those that the config may name besides the native one.
	Engines []Engine
}

// Provider opens the models of a vendor.
type Provider struct {
	Name string
	// KeyEnv is the environment variable of the API key if the config names none; empty for a provider without keys.
	KeyEnv string
	Open   func(Connection) (llm.Model, error)
}

// Connection is how to reach a model. Zero fields are defaults of the provider.
type Connection struct {
	BaseURL, Key string
	HTTP         *http.Client
	MaxTokens    int64
}

// Store is an open store, which the command closes.
type Store interface {
	store.Store
	store.Events
	store.Clock
	Health(ctx context.Context) error
	Close(ctx context.Context) error
}

// KV is an open key-value store, which the command closes.
type KV interface {
	kv.Store
	io.Closer
}

// openKV opens a file of keys.
func (l Links) openKV(ctx context.Context, path string) (KV, error) {
	if l.OpenKV == nil {
		return nil, errors.New("this program has key-value spaces in memory only; write memory: true")
	}
	return l.OpenKV(ctx, path)
}

// Engine makes an engine for the host.
type Engine struct {
	Name string
	New  func() host.Engine
}

// provider returns the provider of a name.
func (l Links) provider(name string) (Provider, error) {
	for _, p := range l.Providers {
		if p.Name == name {
			return p, nil
		}
	}
	return Provider{}, fmt.Errorf("provider: there is no %.40q", name)
}

// nativeEngine is the name of the host's own engine.
const nativeEngine = "native"

// engine makes the engine that a config names, nil for the native one.
func (l Links) engine(name string) (host.Engine, error) {
	if name == "" || name == nativeEngine {
		return nil, nil //nolint:nilnil // the default of the host
	}
	for _, e := range l.Engines {
		if e.Name == name {
			return e.New(), nil
		}
	}
	return nil, fmt.Errorf("config: engine: there is no %.40q", name)
}

// names are those that a config may use.
func (l Links) names() config.Names {
	n := config.Names{Engines: []string{nativeEngine}}
	for _, p := range l.Providers {
		n.Providers = append(n.Providers, p.Name)
	}
	for _, e := range l.Engines {
		n.Engines = append(n.Engines, e.Name)
	}
	return n
}
