package launch

import (
	"os"
	"regexp"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// configured returns a string of the settings of an agent.
func (p Place) configured(agent string, path ...string) string {
	name, err := p.settings(agent)
	if err != nil {
		return ""
	}
	text, err := os.ReadFile(name)
	if err != nil {
		return ""
	}
	return wire.Text(text, path...)
}

// codex returns the arguments that give Codex an address: for the provider that its config chooses, or for one that is
// named like the vendor's.
func (p Place) codex(route func(name, was string) string, address string) []string {
	name, err := p.settings(Codex)
	if err != nil {
		return nil
	}
	text, _ := os.ReadFile(name)
	top := len(text)
	if at := tomlTable.FindIndex(text); at != nil {
		top = at[0]
	}
	if m := tomlProvider.FindSubmatch(text[:top]); len(m) > 1 && string(m[1]) != "openai" {
		provider := string(m[1])
		table := regexp.MustCompile(`(?ms)^[ \t]*\[model_providers\.["']?` + regexp.QuoteMeta(provider) + `["']?\][^\[]*?^[ \t]*base_url[ \t]*=[ \t]*["']([^"'\n]+)["']`)
		if was := table.FindSubmatch(text); was != nil {
			return []string{"-c", "model_providers." + provider + ".base_url=" + string(wire.Quote(route("env-codex", string(was[1]))))}
		}
	}
	set := `{name="OpenAI",base_url=` + string(wire.Quote(address+"/v1")) + `,wire_api="responses",requires_openai_auth=true}`
	return []string{"-c", `model_provider="mortise"`, "-c", "model_providers.mortise=" + set}
}
