package host

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// ExportType returns the signature of an exported function, such as "(i32) -> i64", the kind
// of an export that is none, such as "a memory", and empty text where there is no export of that name.
func (g *Generation) ExportType(name string) string {
	ex, ok := g.parsed.Export(name)
	if !ok {
		return ""
	}
	return typeOf(ex)
}

// ExportType is [Generation.ExportType] of the current generation.
func (m *Module) ExportType(name string) string { return m.Current().ExportType(name) }

// goCommand reports whether a module is a program that Go has built, with functions for a host. Those
// only work in a reactor: a program's runtime is started by its main function.
func goCommand(m *wasm.Module) bool {
	_, starts := m.Export("_start")
	_, initializes := m.Export("_initialize")
	return starts && !initializes && bytes.Contains(m.Section("producers"), []byte("Go cmd/compile")) &&
		slices.ContainsFunc(m.Exports, func(ex wasm.Export) bool { return ex.Name != "_start" && callable(ex) })
}

// Bounds of what is taken for a typing error: a third of the name, and names of any length that
// functions of a host have.
const (
	typosIn  = 3
	maxTyped = 64
)

// meant words which import a name that is not offered is close to, empty when it is close to none.
func meant(module, name string) string {
	if len(module) > maxTyped || len(name) > maxTyped {
		return ""
	}
	best, least := "", 1+max(1, len(name)/typosIn)
	for _, known := range []string{engine.ModuleHost, engine.ModuleEnv, engine.ModuleWASI} {
		far := distance(module, known)
		if far > 0 && known == engine.ModuleWASI { // its functions have names that others have too
			continue
		}
		for _, f := range slices.Sorted(maps.Keys(offer(known))) {
			d := distance(name, f)
			if len(name) >= typosIn && strings.HasPrefix(f, name) {
				d = min(d, 1) // it was cut short
			}
			if d > 0 && far > len(known)/typosIn {
				continue // neither name is right
			}
			if d < least {
				best, least = known+"."+f, d
			}
		}
	}
	if best == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %s? Else ", best)
}

// distance is how many bytes are to be added, left out or replaced to make one name of another.
func distance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		before := row[0]
		row[0] = i + 1
		for j := range len(b) {
			changed := before
			if a[i] != b[j] {
				changed++
			}
			before = row[j+1]
			row[j+1] = min(changed, row[j]+1, before+1)
		}
	}
	return row[len(b)]
}

// oldImport reports whether an import has the name of Extism's functions before 1.0.
func oldImport(im wasm.Import) bool {
	return im.Module == "env" && strings.HasPrefix(im.Name, "extism_")
}
