package agents

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
)

// The agents.
const (
	Claude = "claude"
	Codex  = "codex"
	Pi     = "pi"
)

// Path returns the absolute path of an agent's program. It skips the test where MORTISE_LIVE is not set or the agent is not installed.
func Path(tb testing.TB, agent string) string {
	tb.Helper()
	if os.Getenv("MORTISE_LIVE") == "" {
		testskip.Skip(tb, "MORTISE_LIVE is not set: real agents do not run (make live)")
	}
	path := filepath.Join(root(tb), "bin", "npm-agents", "node_modules", program(agent))
	if _, err := os.Stat(path); err != nil {
		testskip.Skip(tb, "%s is not installed (make npm-agents)", agent)
	}
	return path
}

// program is relative to node_modules. The launcher of Claude Code in .bin is completed by a script of the package, and install.sh runs none.
func program(agent string) string {
	if agent != Claude {
		return filepath.Join(".bin", agent)
	}
	return filepath.Join("@anthropic-ai", "claude-code-"+runtime.GOOS+"-"+strings.Replace(runtime.GOARCH, "amd64", "x64", 1), "claude")
}

// root is the folder of the module.
func root(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			tb.Fatal("no go.mod above the test")
		}
		dir = filepath.Dir(dir)
	}
}
