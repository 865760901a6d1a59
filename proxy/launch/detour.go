package launch

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Detour is a setting by which an agent asks another server than the proxy.
type Detour struct {
	// File is where it is, empty for the environment.
	File, Key, Value string
	// Overridden means that the launcher's own settings win over it.
	Overridden bool
}

// around are variables that make Claude Code ask another server, whatever its base URL is.
func around() []string {
	return []string{
		"CLAUDE_CODE_USE_BEDROCK", "CLAUDE_CODE_USE_VERTEX", "CLAUDE_CODE_USE_FOUNDRY", "CLAUDE_CODE_USE_ANTHROPIC_AWS", "CLAUDE_CODE_USE_MANTLE",
		"CLAUDE_CODE_USE_GATEWAY", "ANTHROPIC_UNIX_SOCKET",
	}
}

// Detours are the settings of the user, the project and the organization by which Claude Code asks another server than
// the proxy at an address. Getenv reads its environment.
func (p Place) Detours(getenv func(string) string, address string) (out []Detour) {
	on := func(v string) bool {
		return !slices.Contains([]string{"", "0", "false", "no", "off"}, strings.ToLower(v))
	}
	for _, name := range around() {
		if v := getenv(name); on(v) {
			out = append(out, Detour{Key: name, Value: v})
		}
	}
	user, _ := p.settings(Claude)
	managed, _ := filepath.Glob(filepath.Join(p.Managed, "managed-settings.d", "*.json"))
	managed = append(managed, filepath.Join(p.Managed, "managed-settings.json"))
	for _, file := range slices.Concat([]string{user}, p.projects(user), managed) {
		data, err := os.ReadFile(file)
		if err != nil {
			continue
		}
		d, err := open(Claude, data)
		if err != nil {
			continue // Claude Code ignores it as well
		}
		for _, name := range around() {
			if v := text(d, "env", name); on(v) {
				out = append(out, Detour{File: file, Key: "env." + name, Value: v})
			}
		}
		if v := text(d, "env", "ANTHROPIC_BASE_URL"); v != "" && file != user && v != address {
			out = append(out, Detour{File: file, Key: "env.ANTHROPIC_BASE_URL", Value: v, Overridden: !slices.Contains(managed, file)})
		}
	}
	return out
}

// projects are the settings of the project: of the working folder, and of those around it up to the root of a repository.
func (p Place) projects(user string) (out []string) {
	for dir := p.Project; dir != ""; dir = filepath.Dir(dir) {
		for _, name := range []string{"settings.json", "settings.local.json"} {
			if file := filepath.Join(dir, ".claude", name); file != user {
				out = append(out, file)
			}
		}
		if _, err := os.Stat(filepath.Join(dir, ".git")); err == nil {
			return out
		}
		if filepath.Dir(dir) == dir {
			break
		}
	}
	return out[:min(2, len(out))]
}

// BaseURLs are those in the settings of an agent.
func (p Place) BaseURLs(agent string) (out []Detour) {
	file, err := p.settings(agent)
	if err != nil {
		return nil
	}
	data, _ := os.ReadFile(file)
	d, err := open(agent, data)
	if err != nil {
		return nil
	}
	paths := map[string][][]string{
		Claude: {{"env", "ANTHROPIC_BASE_URL"}}, Codex: {{"openai_base_url"}}, Pi: nil, OpenCode: nil,
	}[agent]
	for list, last := range map[string][]string{"model_providers": {"base_url"}, "providers": {"baseUrl"}, "provider": {"options", "baseURL"}} {
		for _, name := range d.Keys(list) {
			paths = append(paths, append([]string{list, name}, last...))
		}
	}
	for _, path := range paths {
		if v := text(d, path...); v != "" {
			out = append(out, Detour{File: file, Key: strings.Join(path, "."), Value: v})
		}
	}
	return out
}
