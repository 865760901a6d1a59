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

// TestLinks: the command line alone has no client of a provider or of a database server, so that a program such as the demo does not compile
// them, and the command has all.
func TestLinks(t *testing.T) {
	t.Parallel()
	clients := []string{"anthropics/anthropic-sdk-go", "openai/openai-go", "jackc/pgx", "nats-io/nats.go", "extism/go-sdk"}
	for program, all := range map[string]bool{"./examples/serve": false, "./cmd/mortise": true} {
		cmd := exec.CommandContext(t.Context(), "go", "list", "-deps", program)
		cmd.Dir = filepath.Join("..", "..")
		out, err := cmd.Output()
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range clients {
			if has := strings.Contains(string(out), "github.com/"+c); has != all {
				t.Errorf("%s compiles %s: %v, want %v", program, c, has, all)
			}
		}
	}
}
