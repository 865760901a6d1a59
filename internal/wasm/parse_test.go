package wasm_test

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/internal/wasm"
)

const head = "\x00asm\x01\x00\x00\x00"

// moduleDir returns the folder of a dependency, and skips where it is not there.
func moduleDir(tb testing.TB, path string) string {
	tb.Helper()
	out, err := exec.CommandContext(tb.Context(), "go", "list", "-m", "-f", "{{.Dir}}", path).Output()
	dir := strings.TrimSpace(string(out))
	if err != nil || dir == "" {
		testskip.Missing(tb, "the source of %s is not in the module cache (%v)", path, err)
	}
	return dir
}

func TestParse_errors(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, in string
		want     error
		text     string
	}{
		{"empty", "", wasm.ErrMagic, "wasm: offset 0: not a WebAssembly binary: no bytes"},
		{"text", "(module)", wasm.ErrMagic, "wasm: offset 0: not a WebAssembly binary: the first bytes are 28 6d 6f 64"},
		{"half magic", "\x00as", wasm.ErrTruncated, "wasm: offset 3: truncated: the header has 3 of 8 bytes"},
		{"component", "\x00asm\x0d\x00\x01\x00", wasm.ErrComponent, "wasm: offset 4: a WebAssembly component, not a core module: version 13"},
		{"version", "\x00asm\x02\x00\x00\x00", wasm.ErrVersion, "wasm: offset 4: unknown version of the WebAssembly format: version 2, layer 0"},
		{"section without length", head + "\x01", wasm.ErrTruncated, "wasm: offset 9: truncated: section length is cut off"},
		{"section too long", head + "\x01\x09\x01", wasm.ErrTruncated, "wasm: offset 9: truncated: section 1 needs 9 bytes, 1 are left"},
		{"huge count", head + "\x01\x05\xff\xff\xff\xff\x0f", wasm.ErrMalformed, "wasm: offset 10: malformed: 4294967295 types do not fit in 0 bytes"},
		{"long number", head + "\x01\xff\xff\xff\xff\x7f", wasm.ErrMalformed, "wasm: offset 9: malformed: section length does not fit in 32 bits"},
		{"unknown section", head + "\x0e\x00", wasm.ErrMalformed, "wasm: offset 8: malformed: unknown section 14"},
		{"order", head + "\x03\x01\x00\x01\x01\x00", wasm.ErrMalformed, "wasm: offset 11: malformed: section 1 is repeated or out of order"},
		{"gc type", head + "\x01\x04\x01\x5f\x00\x00", wasm.ErrUnsupported, "wasm: offset 11: unsupported feature: type form 0x5f (garbage collection)"},
		{"left over", head + "\x01\x02\x00\x00", wasm.ErrMalformed, "wasm: offset 11: malformed: 1 bytes are left over in section 1"},
		{"no body", head + "\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00", wasm.ErrTruncated, "wasm: offset 18: truncated: 1 functions but no code section"},
		{"bodies without functions", head + "\x0a\x03\x01\x00\x0b", wasm.ErrMalformed, "wasm: offset 13: malformed: 0 functions but 1 bodies"},
		{"name not UTF-8", head + "\x00\x02\x01\xff", wasm.ErrMalformed, "wasm: offset 10: malformed: section name is not UTF-8"},
		{"export of nothing", head + "\x07\x05\x01\x01a\x00\x07", wasm.ErrMalformed, "wasm: offset 15: malformed: export 0 is function 7, which does not exist"},
		{"start of nothing", head + "\x08\x01\x00", wasm.ErrMalformed, "wasm: offset 11: malformed: the start function 0 does not exist"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			m, err := wasm.Parse([]byte(tt.in))
			if m != nil || !errors.Is(err, tt.want) {
				t.Fatalf("got %v, %v; want %v", m, err, tt.want)
			}
			if err.Error() != tt.text {
				t.Errorf("text:\n got %s\nwant %s", err, tt.text)
			}
		})
	}
}

func TestParse_everythingIsRead(t *testing.T) {
	t.Parallel()
	in := head +
		"\x00\x06\x04infoA" + // custom section
		"\x01\x0a\x02\x60\x02\x7f\x7e\x01\x7f\x60\x00\x00" +
		"\x02\x0c\x02\x01m\x01f\x00\x01\x01m\x01g\x00\x00"[:2] + "\x01" + "\x01m\x01f\x00\x01"
	// One import: section length 7.
	in = strings.Replace(in, "\x02\x0c\x01", "\x02\x07\x01", 1)
	in += "\x03\x02\x01\x00" +
		"\x04\x05\x01\x70\x01\x02\x05" +
		"\x05\x04\x01\x01\x01\x10" +
		"\x07\x0d\x02\x03add\x00\x01\x03mem\x02\x00" +
		"\x08\x01\x00" +
		"\x0a\x06\x01\x04\x00\x41\x00\x0b"
	m, err := wasm.Parse([]byte(in))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(m.Section("info")); got != "A" || m.Section("none") != nil {
		t.Errorf("custom section %q", got)
	}
	add, ok := m.Export("add")
	if !ok || add.Func.String() != "(i32, i64) -> i32" || add.Index != 1 {
		t.Errorf("export %+v", add)
	}
	if im := m.Imports[0]; im.Module != "m" || im.Name != "f" || im.Func.String() != "() -> ()" || m.ImportedFuncs != 1 {
		t.Errorf("import %+v", im)
	}
	if got := m.Memories[0]; got.Min != 1 || got.Max != 16 || !got.HasMax {
		t.Errorf("memory %+v", got)
	}
	if got := m.Tables[0]; got.Elem != wasm.FuncRef || got.Limits.Min != 2 || got.Limits.Max != 5 {
		t.Errorf("table %+v", got)
	}
	if m.Start == nil || *m.Start != 0 || len(m.Funcs) != 1 || m.Size != len(in) {
		t.Errorf("module %+v", m)
	}
	end := 8
	for _, s := range m.Sections {
		if s.Start != end {
			t.Errorf("section %d starts at %d, want %d", s.ID, s.Start, end)
		}
		end = s.Offset + len(s.Body)
	}
	if end != len(in) {
		t.Errorf("sections end at %d of %d", end, len(in))
	}
	// A cut is noticed, unless it is between sections and no body is missing yet.
	whole := map[int]bool{8: true, 16: true, 28: true, 37: true}
	for cut := range len(in) {
		m, err := wasm.Parse([]byte(in[:cut]))
		if (m != nil) != whole[cut] {
			t.Errorf("cut at %d: %v, %v", cut, m, err)
		}
		if want := wasm.ErrTruncated; cut > 0 && err != nil && !errors.Is(err, want) {
			t.Errorf("cut at %d: %v", cut, err)
		}
	}
}

func TestParse_extismModules(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(moduleDir(t, "github.com/extism/go-sdk"), "wasm", "*.wasm"))
	if err != nil || len(files) != 27 {
		t.Fatalf("found %d modules, want 27 (%v)", len(files), err)
	}
	for _, f := range files {
		t.Run(filepath.Base(f), func(t *testing.T) {
			t.Parallel()
			b, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			m, err := wasm.Parse(b)
			if err != nil {
				t.Fatal(err)
			}
			if len(m.Exports) == 0 || len(m.Imports) == 0 || len(m.Funcs) == 0 {
				t.Errorf("%d exports, %d imports, %d functions", len(m.Exports), len(m.Imports), len(m.Funcs))
			}
			for _, cut := range []int{9, 100, len(b) / 2, len(b) - 1} {
				if _, err := wasm.Parse(b[:cut]); err == nil {
					t.Errorf("cut at %d of %d was accepted", cut, len(b))
				}
			}
		})
	}
}

// TestParse_spectest reads the specification's own binaries as kept by wazero:
// valid modules must parse, malformed ones must not panic.
func TestParse_spectest(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"v1", "v2"} {
		dir := filepath.Join(moduleDir(t, "github.com/tetratelabs/wazero"), "internal", "integration_test", "spectest", version, "testdata")
		scripts, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil || len(scripts) == 0 {
			testskip.Missing(t, "the specification's binaries are not in %s", version)
		}
		var valid, malformed, refused int
		for _, script := range scripts {
			var doc struct {
				Commands []struct {
					Type       string `json:"type"`
					Filename   string `json:"filename"`
					ModuleType string `json:"module_type"`
				} `json:"commands"`
			}
			raw, err := os.ReadFile(script)
			if err != nil {
				t.Fatal(err)
			}
			if err := json.Unmarshal(raw, &doc); err != nil {
				t.Fatal(err)
			}
			for _, c := range doc.Commands {
				if c.Filename == "" || c.ModuleType == "text" {
					continue
				}
				b, err := os.ReadFile(filepath.Join(dir, c.Filename))
				if err != nil {
					continue
				}
				_, err = wasm.Parse(b)
				switch c.Type {
				case "module":
					valid++
					if err != nil {
						t.Errorf("%s: %v", c.Filename, err)
					}
				case "assert_malformed":
					malformed++
					if err != nil {
						refused++
					}
				}
			}
		}
		if valid < 100 || malformed < 10 {
			t.Errorf("%s: only %d valid and %d malformed binaries", version, valid, malformed)
		}
		t.Logf("%s: %d valid parsed; %d of %d malformed refused", version, valid, refused, malformed)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(head))
	f.Add([]byte(head + "\x00\x06\x04infoA\x01\x04\x01\x60\x00\x00\x03\x02\x01\x00\x0a\x04\x01\x02\x00\x0b"))
	f.Add([]byte(head + "\x02\x07\x01\x01m\x01f\x02\x00\x01"))
	f.Add([]byte(head + "\x05\x03\x01\x04\x01\x07\x05\x01\x01m\x02\x00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		m, err := wasm.Parse(b)
		if err != nil {
			var pe *wasm.ParseError
			if !errors.As(err, &pe) || pe.Offset < 0 || pe.Offset > len(b) {
				t.Fatalf("error without a place in the binary: %v", err)
			}
			return
		}
		end := 8
		for _, s := range m.Sections {
			if s.Start != end || s.Offset < s.Start || s.Offset+len(s.Body) > len(b) {
				t.Fatalf("section %+v after offset %d", s, end)
			}
			end = s.Offset + len(s.Body)
		}
		for _, ex := range m.Exports {
			if ex.Kind == wasm.KindFunc && ex.Func == nil {
				t.Fatalf("export %q has no type", ex.Name)
			}
		}
	})
}
