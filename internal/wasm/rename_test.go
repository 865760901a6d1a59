package wasm_test

import (
	"bytes"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/wasm"
)

// guests are the modules in text format of package host.
func guests(tb testing.TB) map[string][]byte {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "host", "testdata", "*.wasm"))
	if err != nil || len(paths) < 20 {
		tb.Fatalf("%d guests, %v", len(paths), err)
	}
	out := map[string][]byte{}
	for _, p := range paths {
		b, err := os.ReadFile(p)
		if err != nil {
			tb.Fatal(err)
		}
		out[filepath.Base(p)] = b
	}
	return out
}

func TestRenameImports(t *testing.T) {
	t.Parallel()
	renamed := 0
	for name, bin := range guests(t) {
		m, err := wasm.Parse(bin)
		if err != nil {
			continue // some are broken on purpose
		}
		before := bytes.Clone(bin)
		same, err := wasm.RenameImports(m, bin, func(module, name string) (string, string) { return module, name })
		if err != nil || !bytes.Equal(same, bin) {
			t.Errorf("%s: nothing was renamed, and it is another binary: %v", name, err)
		}
		long := strings.Repeat("long", 100)
		out, err := wasm.RenameImports(m, bin, func(module, name string) (string, string) { return "x:" + module, name + long })
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		got, err := wasm.Parse(out)
		if err != nil || len(got.Imports) != len(m.Imports) || !bytes.Equal(before, bin) {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for i, im := range got.Imports {
			want := m.Imports[i]
			want.Module, want.Name = "x:"+want.Module, want.Name+long
			if !reflect.DeepEqual(im, want) {
				t.Errorf("%s: import %d is %+v, not %+v", name, i, im, want)
			}
			renamed++
		}
		if !reflect.DeepEqual(got.Exports, m.Exports) || !reflect.DeepEqual(got.Funcs, m.Funcs) {
			t.Errorf("%s: more than the imports has changed", name)
		}
	}
	if renamed < 50 {
		t.Errorf("only %d imports were renamed", renamed)
	}
}

func FuzzRenameImports(f *testing.F) {
	for _, bin := range guests(f) {
		f.Add(bin, "a", "b")
	}
	f.Fuzz(func(t *testing.T, bin []byte, module, name string) {
		m, err := wasm.Parse(bin)
		if err != nil {
			return
		}
		module, name = strings.ToValidUTF8(module, "?"), strings.ToValidUTF8(name, "?")
		out, err := wasm.RenameImports(m, bin, func(string, string) (string, string) { return module, name })
		if err != nil {
			t.Fatalf("a module that was parsed: %v", err)
		}
		got, err := wasm.Parse(out)
		if err != nil || len(got.Imports) != len(m.Imports) || len(got.Sections) != len(m.Sections) {
			t.Fatalf("%v", err)
		}
		for i, im := range got.Imports {
			if im.Module != module || im.Name != name || im.Kind != m.Imports[i].Kind {
				t.Fatalf("import %d: %+v", i, im)
			}
		}
	})
}
