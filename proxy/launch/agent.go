package launch

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/proxy/wire"
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
}

// Here is the place of the user who runs the program.
func Here() (Place, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return Place{}, fmt.Errorf("launch: %w", err)
	}
	state := os.Getenv("XDG_STATE_HOME")
	if state == "" {
		state = filepath.Join(home, ".local", "state")
	}
	return Place{Home: home, Getenv: os.Getenv, State: filepath.Join(state, "mortise", "proxy")}, nil
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
		return filepath.Join(dir("XDG_CONFIG_HOME", ".config"), "opencode", "opencode.json"), nil
	}
	return "", fmt.Errorf("launch: there is no agent %.40q; write one of %s", agent, strings.Join(Agents(), ", "))
}

// providers are those that pi and opencode have built in, with what follows the address in their base URLs.
func providers(agent string) map[string]string {
	if agent == Pi {
		return map[string]string{"anthropic": "", "openai": "/v1"}
	}
	return map[string]string{"anthropic": "/v1", "openai": "/v1"}
}

// edit returns settings with the proxy's address, and the base URLs that they had, by the name of a route.
func edit(agent string, text []byte, address string) (out []byte, former map[string]string, err error) {
	former = map[string]string{}
	if agent == Codex {
		return editTOML(text, address, former)
	}
	if strings.TrimSpace(string(text)) == "" {
		text = []byte("{}\n")
	}
	if !json.Valid(text) {
		return nil, nil, errors.New("launch: the settings are no plain JSON (comments?); write the address by hand")
	}
	if agent == Claude {
		return editClaude(text, address, former)
	}
	return editProviders(agent, text, address, former)
}

func editClaude(text []byte, address string, former map[string]string) ([]byte, map[string]string, error) {
	url := address
	if was := wire.Text(text, "env", "ANTHROPIC_BASE_URL"); was != "" && was != address && !strings.HasPrefix(was, address+"/to/") {
		former[Claude], url = was, address+"/to/"+Claude
	}
	text, err := setJSON(text, wire.Quote(url), "env", "ANTHROPIC_BASE_URL")
	if err == nil && wire.Text(text, "env", "ENABLE_TOOL_SEARCH") == "" {
		text, err = setJSON(text, wire.Quote("true"), "env", "ENABLE_TOOL_SEARCH")
	}
	return text, former, err
}

// editProviders edits settings with a list of providers, of pi and opencode.
func editProviders(agent string, text []byte, address string, former map[string]string) ([]byte, map[string]string, error) {
	base := []string{"providers", "", "baseUrl"}
	if agent == OpenCode {
		base = []string{"provider", "", "options", "baseURL"}
	}
	names := providers(agent)
	for _, name := range keys(text, base[0]) {
		if _, known := names[name]; !known {
			names[name] = ""
		}
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		base[1] = name
		was, url := wire.Text(text, base...), address+names[name]
		if was == "" && names[name] == "" && name != "anthropic" {
			continue // a provider with an address of its own, which is not known here
		}
		if was != "" && !strings.HasPrefix(was, address) {
			route := agent + "-" + name
			former[route], url = was, address+"/to/"+route
		}
		var err error
		if text, err = setJSON(text, wire.Quote(url), base...); err != nil {
			return nil, nil, err
		}
	}
	return text, former, nil
}

// keys are the fields of an object.
func keys(text []byte, name string) (out []string) {
	at := wire.Field(text, wire.Whole(text), name)
	if !at.Exists() {
		return nil
	}
	_ = wire.Object(text, at, func(key []byte, _, _ wire.Span) error {
		out = append(out, string(key))
		return nil
	})
	return out
}

// setJSON sets a field, and makes the objects on the way to it.
func setJSON(text, val []byte, path ...string) ([]byte, error) {
	at := wire.Whole(text)
	for i, name := range path {
		next := wire.Field(text, at, name)
		if !next.Exists() {
			if at.From >= len(text) || text[at.From] != '{' {
				return nil, fmt.Errorf("launch: %s is no object", strings.Join(path[:i], "."))
			}
			for j := len(path) - 1; j > i; j-- {
				val = append(append(append(append([]byte("{"), wire.Quote(path[j])...), ": "...), val...), '}')
			}
			return wire.Apply(text, []wire.Splice{wire.AddField(text, at, name, val)}), nil
		}
		at = next
	}
	return wire.Apply(text, []wire.Splice{{At: at, New: val}}), nil
}

const (
	tomlBegin = "# begin of mortise proxy: mortise proxy uninstall codex removes these lines\n"
	tomlEnd   = "# end of mortise proxy\n"
)

var (
	tomlProvider = regexp.MustCompile(`(?m)^[ \t]*model_provider[ \t]*=[ \t]*["']([^"'\n]+)["'].*$`)
	tomlTable    = regexp.MustCompile(`(?m)^[ \t]*\[`)
)

// editTOML connects Codex: a provider of its own that is named like the vendor's, or another address for the one that
// the config chooses.
func editTOML(text []byte, address string, former map[string]string) ([]byte, map[string]string, error) {
	if strings.Contains(string(text), tomlBegin) {
		return text, former, nil
	}
	top := len(text)
	if at := tomlTable.FindIndex(text); at != nil {
		top = at[0]
	}
	m := tomlProvider.FindSubmatch(text[:top])
	if len(m) < 2 || string(m[1]) == "openai" {
		head := tomlBegin + "model_provider = \"mortise\"\n" + tomlEnd
		rest := string(text)
		if m != nil {
			rest = strings.Replace(rest, string(m[0]), "# mortise proxy: "+string(m[0]), 1)
		}
		if rest != "" && !strings.HasSuffix(rest, "\n") {
			rest += "\n"
		}
		return []byte(head + rest + tomlBegin + "[model_providers.mortise]\nname = \"OpenAI\"\nbase_url = \"" + address +
			"/v1\"\nwire_api = \"responses\"\nrequires_openai_auth = true\n" + tomlEnd), former, nil
	}
	table := regexp.MustCompile(`(?ms)^[ \t]*\[model_providers\.["']?` + regexp.QuoteMeta(string(m[1])) + `["']?\][^\[]*?^[ \t]*base_url[ \t]*=[ \t]*["']([^"'\n]+)["']`)
	at := table.FindSubmatchIndex(text)
	if at == nil {
		return nil, nil, fmt.Errorf("launch: the provider %.40q has no base_url that can be changed", m[1])
	}
	former[Codex] = string(text[at[2]:at[3]])
	return []byte(string(text[:at[2]]) + address + "/to/" + Codex + string(text[at[3]:])), former, nil
}
