package host_test

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// importing is a plugin that imports a function, and another one from where Extism offers it now.
func importing(module, name string) []byte {
	return wasmOf(
		sec(sType, fn(nil, enc(i32))),
		sec(sImport, enc(sized("extism:host/env"), sized("get_log_level"), 0, 0), enc(sized(module), sized(name), 0, 0)),
		sec(sExport, export("run", 0, 0)),
	)
}

// TestHost_Load_hints: an import that is not offered is named with the one that was probably meant.
func TestHost_Load_hints(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ module, name, want string }{
		{"extism:host/env", "input_len", "; did you mean extism:host/env.input_length? Else update the host, or build"},
		{"extism:host/env", "inputlength", "; did you mean extism:host/env.input_length? Else"},
		{"mortise:host/1", "output_writes", "; did you mean mortise:host/1.output_write? Else"},
		{"mortise:host", "input_read", "; did you mean mortise:host/1.input_read? Else import only from"},
		{"env", "input_read", "; did you mean mortise:host/1.input_read? Else import only from"},
		{"extism:host/env", "input_read", "; did you mean mortise:host/1.input_read? Else update"},
		{"extism:host/user", "http_reqest", "; did you mean extism:host/env.http_request? Else import only from"},
		{"extism:host/user", "mult", "which is not offered; import only from"},
		{"extism:host/env", "launch_missiles", "which is not offered; update the host"},
		{"env", "write", "which is not offered; import only from"},
		{"env", "extism_input_length", "imports env.extism_input_length, a name that Extism had before 1.0; build it again with a current Extism PDK"},
		{strings.Repeat("m", 1<<16), strings.Repeat("n", 1<<16), "which is not offered; import only from"},
	} {
		wasm := importing(c.module, c.name)
		_, err := newHost(t, host.Config{}).Load(t.Context(), host.Spec{Name: "typo", Wasm: wasm})
		if !errors.Is(err, host.ErrImport) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40s.%.40s:\ngot  %.400v\nwant %s", c.module, c.name, err, c.want)
		}
	}
}

// TestHost_Load_goCommand: a plugin in Go that was built as a program is refused with the flag that is
// missing; one that only has a main function is not.
func TestHost_Load_goCommand(t *testing.T) {
	t.Parallel()
	const plugin = "package main\n\n//go:wasmexport describe\nfunc describe() int32 { return 0 }\n\nfunc main() {}\n"
	for _, c := range []struct {
		source, mode string
		refused      bool
	}{
		{plugin, "default", true},
		{plugin, "c-shared", false},
		{"package main\n\nfunc main() {}\n", "default", false},
	} {
		wasm := buildGo(t, c.source, c.mode)
		_, err := newHost(t, host.Config{}).Load(t.Context(), host.Spec{Name: "gopher", Wasm: wasm})
		const want = `module "gopher" is a Go program: it exports _start and no _initialize, so its functions cannot be called; build it with -buildmode=c-shared`
		if (err != nil) != c.refused || c.refused && (!errors.Is(err, host.ErrExport) || !strings.Contains(err.Error(), want)) {
			t.Errorf("-buildmode=%s: %v", c.mode, err)
		}
		in, err := host.Inspect("gopher", wasm)
		if err != nil || c.refused != (len(in.Problems) > 0 && in.Problems[0].Err != nil) {
			t.Errorf("-buildmode=%s: %+v, %v", c.mode, in, err)
		}
	}
}

// buildGo builds a program for WASI.
func buildGo(t *testing.T, source, mode string) []byte {
	t.Helper()
	dir := t.TempDir()
	writeFile(t, filepath.Join(dir, "main.go"), []byte(source))
	writeFile(t, filepath.Join(dir, "go.mod"), []byte("module gopher\n\ngo 1.24\n"))
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode="+mode, "-trimpath", "-ldflags=-s -w -buildid=", "-o", "out.wasm", ".")
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "CGO_ENABLED=0", "GOTOOLCHAIN=local")
	text, err := cmd.CombinedOutput()
	if errors.Is(err, exec.ErrNotFound) {
		testskip.Skip(t, "there is no go command to build a guest with")
	}
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	b, err := os.ReadFile(filepath.Join(dir, "out.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// TestModule_ExportType names the type of what is no function of a plugin.
func TestModule_ExportType(t *testing.T) {
	t.Parallel()
	m := load(t, hosttest.Native, host.Spec{Path: wat("echo")})
	for name, want := range map[string]string{"echo": "() -> i32", "memory": "a memory", "none": ""} {
		if got := m.ExportType(name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}
