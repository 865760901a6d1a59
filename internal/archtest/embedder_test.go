package archtest_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestEmbedderOfHost: a program that imports package host alone compiles at most 60 packages beyond those of wazero and
// of the standard library, and not go-sdk.
func TestEmbedderOfHost(t *testing.T) {
	t.Parallel()
	const most = 60
	cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./host")
	cmd.Dir = filepath.Join("..", "..")
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for path := range strings.FieldsSeq(string(out)) {
		switch {
		case strings.HasPrefix(path, "github.com/tetratelabs/wazero"):
			continue
		case strings.HasPrefix(path, "github.com/extism/"):
			t.Errorf("package host compiles %s: only package extismengine may", path)
		}
		n++
	}
	if n < 3 || n > most {
		t.Errorf("package host compiles %d packages, more than %d", n, most)
	}
	t.Logf("%d packages", n)
}
