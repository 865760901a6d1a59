package host

import (
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"path/filepath"
	"strings"
)

// Spec says what to load and under which conditions.
type Spec struct {
	// Name of the module in errors, logs and statistics. Empty means the file
	// name of Path without its extension.
	Name string
	// Path of the binary. When Wasm is set, Path is not read; it only tells
	// where the bytes came from.
	Path string
	// Wasm is the binary. Do not change it while the module is being loaded.
	Wasm []byte
	// SHA256 of the binary in hexadecimal, with or without "sha256:" before it.
	// Empty means that any binary is fine.
	SHA256 string
	// Links are further modules that the binary imports functions from, at most 16.
	Links []Link
	// Require names exports that the module must have, with no parameters and an
	// i32 as result.
	Require []string
	// Limits of the module. Zero fields take those of [Config].
	Limits Limits
	// Grants of the module. The zero Grants grant nothing.
	Grants Grants
}

// Grants are what the operator lets a module do beyond computing. A module that
// imports a function of a capability which was not granted is refused by Load.
type Grants struct {
	// Config is what the guest reads with config_get.
	Config map[string]string
	// Log lets the guest write to [Config.Logger].
	Log bool
	// LogLevel is the least level that is written; messages below it are not counted
	// as dropped. Nil means debug, which is the lowest.
	LogLevel slog.Leveler
	// Clock gives the guest the real time. Else every instance sees the same
	// fixed clock.
	Clock bool
	// Random gives the guest random bytes of the system. Else every instance
	// sees the same fixed sequence.
	Random bool
	// Sticky lets the module have sessions: instances that keep their state from
	// call to call. See [Module.Session].
	Sticky bool
	// KV gives the guest a namespace of a key-value store.
	KV *KVSpace
	// Files gives the guest folders of the host.
	Files []Mount
	// HTTP lets the guest make requests.
	HTTP *HTTP
	// Secrets are the credentials that the guest may send with HTTP, by their names.
	Secrets map[string]Secret
	// Model lets the guest ask a model.
	Model *Model
	// Functions are host functions of the embedder.
	Functions []Function
}

// withDefaults checks the grants of a module and fills in their zero fields. What
// it returns shares nothing with the caller that the caller may change.
func (g Grants) withDefaults(module string) (Grants, error) {
	var err error
	g.Config = maps.Clone(g.Config)
	if g.KV, err = g.KV.withDefaults(module); err != nil {
		return g, err
	}
	if g.Files, err = mounts(g.Files); err != nil {
		return g, err
	}
	if g.HTTP != nil {
		grant := *g.HTTP
		g.HTTP, g.Secrets = &grant, maps.Clone(g.Secrets)
	}
	if g.Model, err = g.Model.withDefaults(); err != nil {
		return g, err
	}
	g.Functions, err = functions(g.Functions)
	return g, err
}

// has tells whether a field that a host function needs is set.
func (g *Grants) has(field string) bool {
	switch field {
	case "":
		return true
	case grantKV:
		return g.KV != nil
	case grantHTTP:
		return g.HTTP != nil
	case grantModel:
		return g.Model != nil && g.Model.Ask != nil
	}
	return false
}

// withDefaults checks s and fills in its name and limits.
func (s Spec) withDefaults(base Limits) (Spec, error) {
	if s.Name == "" && s.Path != "" {
		file := filepath.Base(s.Path)
		s.Name = strings.TrimSuffix(file, filepath.Ext(file))
	}
	if s.Name == "" {
		return s, errors.New("host: spec: Name is empty and there is no Path to take it from")
	}
	if s.Path == "" && s.Wasm == nil {
		return s, fmt.Errorf("host: spec of %q: neither Path nor Wasm is set", clean(s.Name, 128))
	}
	var err error
	if s.Limits, err = s.Limits.withDefaults(base); err != nil {
		return s, fmt.Errorf("host: spec of %q: %w", clean(s.Name, 128), err)
	}
	if s.Grants, err = s.Grants.withDefaults(s.Name); err != nil {
		return s, fmt.Errorf("host: spec of %q: %w", clean(s.Name, 128), err)
	}
	return s, nil
}
