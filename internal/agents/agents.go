package agents

import (
	"os"
	"path/filepath"
)

// Agents with pinned versions, as install.sh has them.
const (
	Claude = "claude-2.1.197"
	Codex  = "codex-0.169.0"
	Pi     = "pi-0.74.2"
)

// Find returns the program of an agent, or nothing where it is not installed.
func Find(agent string) string {
	dir := os.Getenv("MORTISE_AGENTS")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(cache, "mortise-agents")
	}
	name := agent
	for i := range agent {
		if agent[i] == '-' {
			name = agent[:i]
			break
		}
	}
	path := filepath.Join(dir, agent, "node_modules", ".bin", name)
	if _, err := os.Stat(path); err != nil {
		return ""
	}
	return path
}
