package agents

import (
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/testskip"
)

// The agents. The last four are installed apart.
const (
	Claude   = "claude"
	Codex    = "codex"
	Pi       = "pi"
	Copilot  = "copilot"
	Gemini   = "gemini"
	OpenCode = "opencode"
	Qwen     = "qwen"
)

// Path returns the absolute path of an agent's program. It skips the test where MORTISE_LIVE is not set or the agent is not installed.
func Path(tb testing.TB, agent string) string {
	tb.Helper()
	if os.Getenv("MORTISE_LIVE") == "" {
		testskip.Skip(tb, "MORTISE_LIVE is not set: real agents do not run (make live)")
	}
	folder, target := "npm-agents", "npm-agents"
	switch agent {
	case Copilot, Gemini, OpenCode, Qwen:
		folder, target = "npm-agents/more", "npm-more-agents"
	}
	path := filepath.Join(root(tb), "bin", filepath.FromSlash(folder), "node_modules", program(agent))
	if _, err := os.Stat(path); err != nil {
		testskip.Skip(tb, "%s is not installed (make %s)", agent, target)
	}
	return path
}

// program is relative to node_modules. Some launchers in .bin are completed by a script of their package, and install.sh runs none.
func program(agent string) string {
	platform := runtime.GOOS + "-" + strings.Replace(runtime.GOARCH, "amd64", "x64", 1)
	switch agent {
	case Claude:
		return filepath.Join("@anthropic-ai", "claude-code-"+platform, "claude")
	case Copilot:
		return filepath.Join("@github", "copilot-"+platform, "copilot")
	case OpenCode:
		return filepath.Join("opencode-"+platform, "bin", "opencode")
	default:
		return filepath.Join(".bin", agent)
	}
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
