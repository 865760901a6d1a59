package main_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	guestbuild "github.com/mortise-dev/mortise/internal/guestbuild"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// TestCommittedGuests builds every guest and compares it with the committed file.
func TestCommittedGuests(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		testskip.Skip(t, "builds eight guests; run without -short")
	}
	var out, errs strings.Builder
	if code := guestbuild.Run(t.Context(), []string{"-check"}, &out, &errs); code != 0 {
		t.Errorf("exit %d: %s\n%s", code, out.String(), errs.String())
	}
	if strings.Contains(out.String(), "WARNING") {
		t.Log(out.String())
	} else if n := strings.Count(out.String(), " same\n"); n != 8 {
		t.Errorf("%d of 8 guests compared:\n%s", n, out.String())
	}
}

func TestFlags(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"-nonsense"}, {"-only", "nobody"}} {
		var out, errs strings.Builder
		if code := guestbuild.Run(t.Context(), args, &out, &errs); code != 2 || errs.Len() == 0 {
			t.Errorf("%v: exit %d, %q", args, code, errs.String())
		}
	}
}

// TestBroken builds and checks a made-up repository with one guest.
func TestBroken(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	dir := filepath.Join(root, "examples", "plugins", "index")
	write(t, filepath.Join(root, "go.mod"), "module github.com/mortise-dev/mortise\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "go.mod"), "module example.org/index\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() {}\n")
	run := func(args ...string) (int, string) {
		var out, errs strings.Builder
		code := guestbuild.Run(t.Context(), append(args, "-root", root, "-only", "index"), &out, &errs)
		return code, out.String() + errs.String()
	}
	if code, text := run(); code != 0 {
		t.Fatalf("build: exit %d: %s", code, text)
	}
	if code, text := run("-check"); code != 0 || !strings.Contains(text, "same") {
		t.Errorf("check: exit %d: %s", code, text)
	}
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() { println(1) }\n")
	if code, text := run("-check"); code != 1 || !strings.Contains(text, "index.wasm") {
		t.Errorf("changed source: exit %d: %s", code, text)
	}
	write(t, filepath.Join(root, "testdata", "guests", "TOOLCHAIN"), "go1.0\n")
	if code, text := run("-check"); code != 0 || !strings.Contains(text, "NOTHING WAS COMPARED") {
		t.Errorf("other toolchain: exit %d: %s", code, text)
	}
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() { nonsense }\n")
	if code, text := run("-check"); code != 1 || !strings.Contains(text, "nonsense") {
		t.Errorf("broken source: exit %d: %s", code, text)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// TestBundle: what is embedded is compared, too.
func TestBundle(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	root := t.TempDir()
	dir := filepath.Join(root, "summarizers", "modules", "admission")
	write(t, filepath.Join(root, "go.mod"), "module github.com/mortise-dev/mortise\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "go.mod"), "module example.org/admission\n\ngo 1.26.0\n")
	write(t, filepath.Join(dir, "main.go"), "package main\n\nfunc main() {}\n")
	run := func(args ...string) (int, string) {
		var out, errs strings.Builder
		code := guestbuild.Run(t.Context(), append(args, "-root", root, "-only", "admission"), &out, &errs)
		return code, out.String() + errs.String()
	}
	if code, text := run(); code != 1 || !strings.Contains(text, "guestbuild: internal/bundle: ") {
		t.Fatalf("without the folder: exit %d: %s", code, text)
	}
	bundled := filepath.Join(root, "internal", "bundle")
	write(t, filepath.Join(bundled, "doc.go"), "package bundle\n")
	if code, text := run(); code != 0 || !strings.Contains(text, "bytes compressed in internal/bundle") {
		t.Fatalf("build: exit %d: %s", code, text)
	}
	if code, text := run("-check"); code != 0 {
		t.Errorf("check: exit %d: %s", code, text)
	}
	for _, file := range []string{filepath.Join(bundled, "guests.tar.br"), filepath.Join(bundled, "guests.sha256")} {
		was, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, changed := range []string{string(was) + "x", string(was) + strings.Replace(string(was), "admission", "another", 1)} {
			write(t, file, changed)
			if code, text := run("-check"); code != 1 || !strings.Contains(text, "internal/bundle does not hold what the sources give") {
				t.Errorf("%s changed: exit %d: %s", file, code, text)
			}
		}
		write(t, file, string(was))
	}
}
