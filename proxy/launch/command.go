package launch

import (
	"path/filepath"
	"slices"
	"strings"
)

// Command is how an agent is started with a proxy.
type Command struct {
	Args []string
	Env  []string
	// Routes are the base URLs that the agent had, by the names of routes.
	Routes map[string]string
	// Settings means that the agent is connected by its settings alone, which must be installed while it runs.
	Settings string
}

// Of returns how to start an agent, whose name is that of the program, so that it uses a proxy. Env is the environment
// that it would have.
func Of(p Place, args, env []string, address string) Command {
	c := Command{Args: args, Env: env, Routes: map[string]string{}}
	get := func(name string) string {
		for _, e := range env {
			if v, ok := strings.CutPrefix(e, name+"="); ok {
				return v
			}
		}
		return ""
	}
	route := func(name, was string) string {
		if was == "" || was == address {
			return address
		}
		c.Routes[name] = was
		return address + "/to/" + name
	}
	c.Env = append(slices.Clip(c.Env), "MORTISE_PROXY="+address)
	switch agent := strings.TrimSuffix(filepath.Base(args[0]), ".exe"); agent {
	case Claude:
		was := p.configured(Claude, "env", "ANTHROPIC_BASE_URL")
		if was != "" { // settings win over the environment
			c.Args = append([]string{args[0], "--settings", `{"env":{"ANTHROPIC_BASE_URL":"` + route("env-claude", was) + `"}}`}, args[1:]...)
		} else {
			c.Env = append(c.Env, "ANTHROPIC_BASE_URL="+route("env-claude", get("ANTHROPIC_BASE_URL")))
		}
		if get("ENABLE_TOOL_SEARCH") == "" {
			c.Env = append(c.Env, "ENABLE_TOOL_SEARCH=true")
		}
	case Codex:
		c.Args = append([]string{args[0]}, p.codex(route, address)...)
		c.Args = append(c.Args, args[1:]...)
	case OpenCode:
		if get("OPENCODE_CONFIG_CONTENT") == "" {
			c.Env = append(c.Env, `OPENCODE_CONFIG_CONTENT={"provider":{"anthropic":{"options":{"baseURL":"`+address+`/v1"}},"openai":{"options":{"baseURL":"`+address+`/v1"}}}}`)
		}
	case Pi:
		c.Settings = Pi
	default:
		c.Env = append(c.Env, "ANTHROPIC_BASE_URL="+route("env-anthropic", get("ANTHROPIC_BASE_URL")), "OPENAI_BASE_URL="+base(route("env-openai", get("OPENAI_BASE_URL")), address))
	}
	return c
}

// base is the base URL of OpenAI's clients.
func base(url, address string) string {
	if url == address {
		return url + "/v1"
	}
	return url
}
