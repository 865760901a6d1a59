package host

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// pluginSignature is what a plugin's export looks like.
const pluginSignature = "() -> i32"

// Kinds of binaries, see [Inspection].
const (
	kindPlugin    = "plugin"
	kindCommand   = "wasi_command"
	kindComponent = "component"
	kindOldExtism = "old_extism"
	kindProxyWasm = "proxy_wasm"
	kindUnknown   = "unknown"
)

// Inspection is what can be said about a binary without running it. Names are
// as in the binary, unchecked: escape them before showing them.
type Inspection struct {
	Name string
	// Kind is what the binary seems to be made for: plugin (it follows the Extism convention, so it can be called), wasi_command (a
	// program with a main function and nothing else), component, old_extism (Extism before 1.0), proxy_wasm, or unknown.
	Kind   string
	SHA256 string
	// Size in bytes.
	Size    int
	Imports []Extern
	Exports []Extern
	// MemoryMin and MemoryMax are in pages of 64 KiB; MemoryMax is zero when
	// the module states none.
	MemoryMin, MemoryMax uint64
	// HasStart reports that code runs when an instance is made.
	HasStart bool
	// Sections maps custom sections to their size in bytes.
	Sections map[string]int
	// Problems are what is wrong with the binary. Load refuses it for those that have an Err, which come first.
	Problems []*LoadError
}

// Extern is an import or an export.
type Extern struct {
	// Module is empty for exports.
	Module, Name string
	// Kind is func, table, memory, global or tag.
	Kind string
	// Type is the signature of a function, such as "(i32) -> i64".
	Type string
}

// Inspect describes what a binary is without running or compiling it. A component is
// no error; bytes that are no WebAssembly, or not all of it, are a [*LoadError]
// with [ErrNotCore]. Limits on memory are those of the zero [Limits].
func Inspect(name string, binary []byte) (*Inspection, error) {
	sum := sha256.Sum256(binary)
	in := &Inspection{Name: name, SHA256: hex.EncodeToString(sum[:]), Size: len(binary)}
	m, err := wasm.Parse(binary)
	if kind, ok := unread(err); ok {
		in.Kind, in.Problems = kind, []*LoadError{loadError(Spec{Name: name}, parseProblem(binary, err))}
		return in, nil
	}
	if err != nil {
		return nil, loadError(Spec{Name: name}, parseProblem(binary, err))
	}
	limits, err := Limits{}.withDefaults(Limits{})
	if err != nil {
		return nil, err
	}
	in.fill(m)
	for _, p := range problems(m, limits.MemoryPages, nil, nil) {
		in.Problems = append(in.Problems, loadError(Spec{Name: name}, p))
	}
	slices.SortStableFunc(in.Problems, func(a, b *LoadError) int {
		switch {
		case (a.Err == nil) == (b.Err == nil):
			return 0
		case a.Err != nil:
			return -1
		}
		return 1
	})
	return in, nil
}

// unread is the kind of a binary that is WebAssembly and was not read to its end.
func unread(err error) (string, bool) {
	switch {
	case errors.Is(err, wasm.ErrComponent):
		return kindComponent, true
	case errors.Is(err, wasm.ErrLimit):
		return kindUnknown, true
	}
	return "", false
}

func (in *Inspection) fill(m *wasm.Module) {
	in.Kind, in.HasStart = kindOf(m), m.Start != nil
	for _, im := range m.Imports {
		in.Imports = append(in.Imports, Extern{im.Module, im.Name, im.Kind.String(), signature(im.Func)})
	}
	for _, ex := range m.Exports {
		in.Exports = append(in.Exports, Extern{"", ex.Name, ex.Kind.String(), signature(ex.Func)})
	}
	for _, l := range m.Memories {
		in.MemoryMin, in.MemoryMax = l.Min, l.Max
	}
	in.Sections = map[string]int{}
	for _, s := range m.Sections {
		if s.ID == 0 {
			in.Sections[s.Name] += len(s.Body)
		}
	}
}

func signature(t *wasm.FuncType) string {
	if t == nil {
		return ""
	}
	return t.String()
}

// callable reports whether an export can be called: no parameters, and an i32 or
// nothing as result.
func callable(ex wasm.Export) bool {
	if ex.Kind != wasm.KindFunc || len(ex.Func.Params) != 0 {
		return false
	}
	r := ex.Func.Results
	return len(r) == 0 || len(r) == 1 && r[0] == wasm.I32
}

func kindOf(m *wasm.Module) string {
	for _, im := range m.Imports {
		switch {
		case im.Module == engine.ModuleEnv || im.Module == engine.ModuleHost:
			return kindPlugin
		case oldImport(im):
			return kindOldExtism
		case im.Module == "env" && strings.HasPrefix(im.Name, "proxy_"):
			return kindProxyWasm
		}
	}
	plugin := false
	for _, ex := range m.Exports {
		if strings.HasPrefix(ex.Name, "proxy_abi_version_") {
			return kindProxyWasm
		}
		plugin = plugin || ex.Kind == wasm.KindFunc && ex.Func.String() == pluginSignature
	}
	if _, ok := m.Export("_start"); ok {
		return kindCommand
	}
	if plugin {
		return kindPlugin
	}
	return kindUnknown
}
