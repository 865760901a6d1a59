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

// strangers are files that people give in the place of a module, by how they begin.
func strangers() []struct{ magic, text, hint string } {
	const binary = "give the path of a .wasm binary"
	return []struct{ magic, text, hint string }{
		{"\x1f\x8b", "is compressed with gzip, not WebAssembly", "unpack it first (gunzip)"},
		{"\x28\xb5\x2f\xfd", "is compressed with zstd, not WebAssembly", "unpack it first (unzstd)"},
		{"PK\x03\x04", "is a zip archive, not WebAssembly", "unpack it, and give the path of the .wasm file in it"},
		{"\x7fELF", "is a program or library for Linux, not WebAssembly", "build it for wasm32-wasip1"},
		{"MZ", "is a program or library for Windows, not WebAssembly", "build it for wasm32-wasip1"},
		{"\xcf\xfa\xed\xfe", "is a program or library for macOS, not WebAssembly", "build it for wasm32-wasip1"},
		{"\xca\xfe\xba\xbe", "is a program or library for macOS, or a Java class, not WebAssembly", "build it for wasm32-wasip1"},
		{"!<arch>\n", "is a library of object files, not WebAssembly", "link it into a module first"},
		{"BC\xc0\xde", "is bitcode of LLVM, not WebAssembly", "compile and link it into a module first"},
		{"version https://git-lfs", "is a pointer of Git LFS, not WebAssembly", "fetch the file itself (git lfs pull)"},
		{"<", "is a page of HTML or XML, not WebAssembly", "look at what was downloaded, and " + binary},
		{"{", "is JSON, not WebAssembly", binary},
		{"(", "is WebAssembly in text, not a binary", "make a binary of it with wat2wasm"},
		{";;", "is WebAssembly in text, not a binary", "make a binary of it with wat2wasm"},
		{"#!", "is a script, not WebAssembly", binary},
	}
}

// strange describes what a file is that is not WebAssembly, as far as its start tells.
func strange(bin []byte) (text, hint string) {
	const enough = 512
	start := string(bytes.TrimLeft(bin[:min(len(bin), enough)], "\ufeff \t\r\n"))
	for _, s := range strangers() {
		if strings.HasPrefix(start, s.magic) {
			return s.text, s.hint
		}
	}
	return "is not WebAssembly", "give the path of a .wasm binary (text has to go through wat2wasm)"
}
