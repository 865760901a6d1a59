package launch

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/hook/install"
)

// Agents that can be connected.
const (
	Claude   = "claude"
	Codex    = "codex"
	Pi       = "pi"
	OpenCode = "opencode"
)

// Agents lists them.
func Agents() []string { return []string{Claude, Codex, Pi, OpenCode} }

// Place is where a user has settings.
type Place struct {
	Home string
	// Getenv reads variables that move settings.
	Getenv func(string) string
	// State is the folder where originals are kept.
	State string
	// Project is the folder in which agents are started, Managed that of the organization's settings of Claude Code.
	Project, Managed string
}

// Here is the place of the user who runs the program.
func Here() (Place, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Place{}, err
	}
	project, err := os.Getwd()
	if err != nil {
		return Place{}, err
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		state = filepath.Join(home, ".local", "state")
	}
	managed := map[string]string{"darwin": "/Library/Application Support/ClaudeCode", "windows": `C:\Program Files\ClaudeCode`}[runtime.GOOS]
	if managed == "" {
		managed = "/etc/claude-code"
	}
	return Place{Home: home, Getenv: os.Getenv, State: filepath.Join(state, "mortise", "proxy"), Project: project, Managed: managed}, nil
}

// settings is the file of an agent.
func (p Place) settings(agent string) (string, error) {
	dir := func(variable, otherwise string) string {
		if v := p.Getenv(variable); v != "" {
			return v
		}
		return filepath.Join(p.Home, otherwise)
	}
	switch agent {
	case Claude:
		return filepath.Join(dir("CLAUDE_CONFIG_DIR", ".claude"), "settings.json"), nil
	case Codex:
		return filepath.Join(dir("CODEX_HOME", ".codex"), "config.toml"), nil
	case Pi:
		return filepath.Join(dir("PI_CODING_AGENT_DIR", filepath.Join(".pi", "agent")), "models.json"), nil
	case OpenCode:
		path := filepath.Join(dir("XDG_CONFIG_HOME", ".config"), "opencode", "opencode.json")
		if _, err := os.Stat(path + "c"); err == nil { // opencode reads it last
			path += "c"
		}
		return path, nil
	}
	return "", fmt.Errorf("there is no agent %.40q; write one of %s", agent, strings.Join(Agents(), ", "))
}

// document is the text of settings, whose values are edited one by one.
type document interface {
	Bytes() []byte
	Raw(path ...string) string
	Keys(path ...string) []string
	Set(raw string, path ...string) error
	Remove(keep func(path []string) bool, path ...string) error
}

// open reads settings in the format of an agent.
func open(agent string, text []byte) (document, error) {
	if agent == Codex {
		return openTOML(text)
	}
	return install.OpenDocument(text, agent != Claude)
}

// text is a value of settings: that of a string, and the source of others. Empty means that there is none.
func text(d document, path ...string) string {
	raw, s := d.Raw(path...), ""
	if _, toml := d.(*tomlDocument); toml {
		return tomlText(raw)
	}
	if json.Unmarshal([]byte(raw), &s) == nil {
		return s
	}
	return raw
}

// change is a value that connects an agent.
type change struct {
	path []string
	text string
	// A base URL that was there before is that of a route.
	route, former string
}

// requiresAuth is a field of Codex that is no string.
const requiresAuth = "requires_openai_auth"

// raw is the source of the value, in JSON and in TOML.
func (c *change) raw() string {
	if slices.Contains(c.path, requiresAuth) {
		return c.text
	}
	return quoted(c.text)
}

func quoted(text string) string {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text)
	return strings.TrimSpace(b.String())
}

// key is how a person writes the path.
func (c *change) key() string { return strings.Join(c.path, ".") }

// toAddress is the change of a base URL that was former: to the address with a suffix, or to a route.
func toAddress(address, suffix, route, former string, path ...string) change {
	if former == "" || former == address+suffix {
		return change{path: path, text: address + suffix}
	}
	return change{path: path, text: address + "/to/" + route, route: route, former: former}
}

// changes are the values that connect an agent with these settings. Of several the last ones win.
func changes(agent, address string, settings ...document) ([]change, error) {
	slices.Reverse(settings)
	was := func(path ...string) string {
		for _, d := range settings {
			if v := text(d, path...); v != "" {
				return v
			}
		}
		return ""
	}
	switch agent {
	case Claude:
		out := []change{toAddress(address, "", Claude, was("env", "ANTHROPIC_BASE_URL"), "env", "ANTHROPIC_BASE_URL")}
		if was("env", "ENABLE_TOOL_SEARCH") == "" {
			out = append(out, change{path: []string{"env", "ENABLE_TOOL_SEARCH"}, text: "true"})
		}
		return out, nil
	case Codex:
		return codexChanges(address, settings[0], was)
	}
	base := func(name string) []string { return []string{"providers", name, "baseUrl"} }
	names := map[string]string{"anthropic": "", "openai": "/v1"} // those built in, with what follows the address
	if agent == OpenCode {
		base = func(name string) []string { return []string{"provider", name, "options", "baseURL"} }
		names["anthropic"] = "/v1"
	}
	var out []change
	for _, d := range settings {
		for _, name := range d.Keys(base("")[0]) {
			if _, known := names[name]; !known && was(base(name)...) != "" {
				names[name] = ""
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		out = append(out, toAddress(address, names[name], url.PathEscape(agent+"-"+name), was(base(name)...), base(name)...))
	}
	return out, nil
}

// codexChanges are a provider that is named like the vendor's, or another address for the one that the config chooses.
func codexChanges(address string, d document, was func(path ...string) string) ([]change, error) {
	const own = "mortise"
	if name := was("model_provider"); name != "" && name != "openai" && name != own {
		former := was("model_providers", name, "base_url")
		if former == "" {
			return nil, fmt.Errorf("model_providers.%.40s has no base_url", name)
		}
		return []change{toAddress(address, "", Codex, former, "model_providers", name, "base_url")}, nil
	}
	if d.Raw("model_providers") != "" || len(d.Keys("model_providers", own)) > 0 {
		return nil, fmt.Errorf("model_providers.%s cannot be added: the config has one, or model_providers on one line", own)
	}
	table := []string{"model_providers", own}
	return []change{
		{path: []string{"model_provider"}, text: own},
		{path: append(slices.Clip(table), "name"), text: "OpenAI"},
		toAddress(address, "/v1", Codex, was("openai_base_url"), append(slices.Clip(table), "base_url")...),
		{path: append(slices.Clip(table), "wire_api"), text: "responses"},
		{path: append(slices.Clip(table), requiresAuth), text: "true"},
	}, nil
}
