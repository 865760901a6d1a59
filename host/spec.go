package host

import (
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"reflect"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// Spec describes what to load and under which conditions.
type Spec struct {
	// Name of the module in errors, logs and statistics. Empty means the file
	// name of Path without its extension.
	Name string
	// Path of the binary. When Wasm is set, Path is not read; it only names
	// the origin of the bytes.
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
		return s, fmt.Errorf("host: spec of %q: neither Path nor Wasm is set", engine.Clean(s.Name, 128))
	}
	var err error
	if s.Limits, err = s.Limits.withDefaults(base); err != nil {
		return s, fmt.Errorf("host: spec of %q: %w", engine.Clean(s.Name, 128), err)
	}
	if s.Grants, err = s.Grants.withDefaults(s.Name); err != nil {
		return s, fmt.Errorf("host: spec of %q: %w", engine.Clean(s.Name, 128), err)
	}
	return s, nil
}

// Spec returns the conditions of the current generation, with the defaults filled in. Wasm and
// SHA256, which belong to the binary, are empty: to swap the binary alone, set Path or Wasm in it and
// pass it to [Module.Swap]. The caller may change what it gets.
func (m *Module) Spec() Spec { return m.Current().Spec() }

// Spec is [Module.Spec] of this generation.
func (g *Generation) Spec() Spec {
	s := g.spec.clone()
	s.Wasm, s.SHA256 = nil, ""
	return s
}

// OnlyBinary reports whether a spec names a binary and no conditions.
func (s Spec) OnlyBinary() bool {
	return s.Links == nil && s.Require == nil && s.Limits == Limits{} && reflect.ValueOf(s.Grants).IsZero()
}

// completed returns the spec of a swap: one that names only a binary keeps the conditions of the
// current generation.
func (m *Module) completed(s Spec) Spec {
	if !s.OnlyBinary() {
		return s
	}
	kept := m.Spec()
	kept.Name, kept.Path, kept.Wasm, kept.SHA256 = s.Name, s.Path, s.Wasm, s.SHA256
	return kept
}

// clone returns a copy that shares nothing that can be changed, the binaries apart.
func (s Spec) clone() Spec {
	s.Links, s.Require = slices.Clone(s.Links), slices.Clone(s.Require)
	g := &s.Grants
	g.Config = maps.Clone(g.Config)
	g.Capabilities, _ = checked(g.Capabilities, s.Name) // each was checked before
	g.Functions = slices.Clone(g.Functions)
	for n := range g.Functions {
		f := &g.Functions[n]
		f.Params, f.Results = slices.Clone(f.Params), slices.Clone(f.Results)
	}
	return s
}

// lacks finds an export that callers of the current generation use and that a binary does not have.
func (m *Module) lacks(parsed *wasm.Module) *problem {
	g := m.current.Load()
	if g == nil {
		return nil
	}
	for _, p := range required(parsed, g.spec.Require) {
		p.text += ", and the generation in use has it because of its Spec.Require"
		return &p
	}
	for _, name := range g.info.Exports {
		t := g.targets[name]
		if !t.Called.Load() || t.Name == exportDescribe { // which describes the binary, not what callers need
			continue
		}
		shown := engine.Clean(t.Name, engine.MaxName)
		ex, ok := parsed.Export(t.Name)
		switch {
		case !ok:
			return &problem{
				fmt.Sprintf("does not export %q, which is called on the generation in use", shown),
				"add the function, or load the binary as another module", ErrExport,
			}
		case !callable(ex):
			return &problem{
				fmt.Sprintf("exports %q as %s, and it is called on the generation in use as %s", shown, typeOf(ex), pluginSignature),
				"give the function no parameters and an i32 as result, or load the binary as another module", ErrExport,
			}
		}
	}
	return nil
}

// inherit marks the exports that callers of the generation before use, in place of those that
// probes have called.
func (g *Generation) inherit(before *Generation) {
	for name, t := range g.targets {
		used := before.targets[name]
		t.Called.Store(used != nil && used.Called.Load())
	}
}

// typeOf is the signature of a function, or the kind of what is none.
func typeOf(ex wasm.Export) string {
	if ex.Kind != wasm.KindFunc {
		return "a " + ex.Kind.String()
	}
	return ex.Func.String()
}
