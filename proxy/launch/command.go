package launch

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/hook/install"
)

// Command is how an agent is started with a proxy. Its settings are not changed.
type Command struct {
	Args []string
	Env  []string
	// Routes are the base URLs that the agent had, by the names of routes.
	Routes map[string]string
	// Dir is a private folder with what the agent reads, to be deleted when it has ended; it may be empty.
	Dir string
	// Detours are settings that lead around the proxy.
	Detours []Detour
}

// Of returns how to start an agent, whose name is that of the program, so that it uses a proxy. Env is the environment
// that it would have.
func Of(p Place, args, env []string, address string) (Command, error) {
	c := Command{Args: slices.Clone(args), Env: append(slices.Clip(env), "MORTISE_PROXY="+address), Routes: map[string]string{}}
	agent := strings.TrimSuffix(filepath.Base(args[0]), ".exe")
	if !slices.Contains(Agents(), agent) {
		for _, name := range []string{"ANTHROPIC", "OPENAI"} {
			suffix := map[string]string{"OPENAI": "/v1"}[name]
			to := toAddress(address, suffix, "env-"+strings.ToLower(name), c.get(name+"_BASE_URL"), name+"_BASE_URL")
			c.route(to)
			c.Env = append(c.Env, name+"_BASE_URL="+to.text)
		}
		return c, nil
	}
	var err error
	switch agent {
	case Claude:
		err = c.claude(p, address)
	case Codex:
		err = c.codex(p, address)
	case OpenCode:
		err = c.openCode(p, address)
	case Pi:
		err = c.pi(p, address)
	}
	if err != nil && c.Dir != "" {
		err = errors.Join(err, os.RemoveAll(c.Dir))
	}
	return c, err
}

// get is the last value of a variable.
func (c *Command) get(name string) string {
	for _, e := range slices.Backward(c.Env) {
		if v, ok := strings.CutPrefix(e, name+"="); ok {
			return v
		}
	}
	return ""
}

func (c *Command) route(to change) {
	if to.route != "" {
		c.Routes[to.route] = to.former
	}
}

// first puts arguments before those of the user.
func (c *Command) first(args ...string) { c.Args = slices.Insert(c.Args, 1, args...) }

// file writes a file for the agent.
func (c *Command) file(name string, data []byte) (path string, err error) {
	if c.Dir == "" {
		if c.Dir, err = os.MkdirTemp("", "mortise-proxy-"); err != nil {
			return "", err
		}
	}
	path = filepath.Join(c.Dir, name)
	return path, os.WriteFile(path, data, 0o600)
}

// users are the settings of an agent as without an installation, empty if the agent cannot read them.
func (p Place) users(agent string) document {
	path, err := p.settings(agent)
	empty, _ := open(agent, nil)
	if err != nil {
		return empty
	}
	now, _ := os.ReadFile(path)
	if n, err := p.read(agent); err == nil && n.Path == path {
		if before, _, err := n.takeOut(agent, now); err == nil {
			now = before
		}
	}
	if d, err := open(agent, now); err == nil {
		return d
	}
	return empty
}

// claude has the address in the environment, and in settings by argument, which win over those of the project.
func (c *Command) claude(p Place, address string) error {
	given, err := c.given(p)
	if err != nil {
		return err
	}
	settings, err := install.OpenDocument(nil, false)
	if err != nil {
		return err
	}
	for _, name := range []string{"ANTHROPIC_BASE_URL", "ENABLE_TOOL_SEARCH"} {
		if v := c.get(name); v != "" {
			if err := settings.Set(quoted(v), "env", name); err != nil {
				return err
			}
		}
	}
	list, err := changes(Claude, address, settings, p.users(Claude), given)
	if err != nil {
		return err
	}
	for _, to := range list {
		c.route(to)
		c.Env = append(c.Env, to.path[1]+"="+to.text)
		if err := given.Set(to.raw(), to.path...); err != nil {
			return err
		}
	}
	path, err := c.file("settings.json", given.Bytes())
	c.first("--settings", path)
	c.Detours = p.Detours(c.get, address)
	return err
}

// given takes the user's own settings out of the arguments: Claude Code reads the last ones alone.
func (c *Command) given(p Place) (document, error) {
	var data []byte
	for i := 1; i < len(c.Args) && c.Args[i] != "--"; i++ {
		v, found := strings.CutPrefix(c.Args[i], "--settings=")
		n := 1
		if c.Args[i] == "--settings" && i+1 < len(c.Args) {
			v, n, found = c.Args[i+1], 2, true
		}
		if !found {
			continue
		}
		data = []byte(v)
		if !strings.HasPrefix(strings.TrimSpace(v), "{") {
			if !filepath.IsAbs(v) {
				v = filepath.Join(p.Project, v)
			}
			var err error
			if data, err = os.ReadFile(v); err != nil {
				return nil, fmt.Errorf("--settings: %w", err)
			}
		}
		c.Args = slices.Delete(c.Args, i, i+n)
		i--
	}
	d, err := open(Claude, data)
	if err != nil {
		return nil, fmt.Errorf("--settings: %w", err)
	}
	return d, nil
}

// codex has the provider in arguments, which win over all settings.
func (c *Command) codex(p Place, address string) error {
	list, err := changes(Codex, address, p.users(Codex))
	if err != nil {
		path, _ := p.settings(Codex)
		return byHand(Codex, path, address, err)
	}
	var args []string
	for _, to := range list {
		c.route(to)
		args = append(args, "-c", to.key()+"="+to.raw())
	}
	c.first(args...)
	return nil
}

// openCode has the addresses in its variable for settings, which wins over all files.
func (c *Command) openCode(p Place, address string) error {
	given, err := open(OpenCode, []byte(c.get("OPENCODE_CONFIG_CONTENT")))
	if err != nil {
		return fmt.Errorf("OPENCODE_CONFIG_CONTENT: %w", err)
	}
	settings := []document{p.users(OpenCode)}
	if data, err := os.ReadFile(c.get("OPENCODE_CONFIG")); err == nil {
		if d, err := open(OpenCode, data); err == nil {
			settings = append(settings, d)
		}
	}
	list, err := changes(OpenCode, address, append(settings, given)...)
	if err != nil {
		return err
	}
	for _, to := range list {
		c.route(to)
		if err := given.Set(to.raw(), to.path...); err != nil {
			return fmt.Errorf("OPENCODE_CONFIG_CONTENT: %w", err)
		}
	}
	c.Env = append(c.Env, "OPENCODE_CONFIG_CONTENT="+string(given.Bytes()))
	return nil
}

// pi has the addresses from an extension of its own.
func (c *Command) pi(p Place, address string) error {
	if len(c.Args) > 1 && slices.Contains([]string{"install", "remove", "uninstall", "update", "list", "config"}, c.Args[1]) {
		return nil // a command of pi that takes no extension and asks no model
	}
	file, _ := p.settings(Pi)
	users := p.users(Pi)
	list, err := changes(Pi, address, users)
	if err != nil {
		return err
	}
	var script strings.Builder
	script.WriteString("export default function (pi) {\n")
	for _, to := range list {
		if models := []string{"providers", to.path[1], "models"}; strings.Contains(users.Raw(models...), `"baseUrl"`) {
			// An extension moves all models of a provider, also those of other servers.
			c.Detours = append(c.Detours, Detour{File: file, Key: strings.Join(models, ".") + "[].baseUrl", Value: "set"})
			continue
		}
		c.route(to)
		fmt.Fprintf(&script, "  pi.registerProvider(%s, { baseUrl: %s });\n", quoted(to.path[1]), to.raw())
	}
	path, err := c.file("mortise-proxy.ts", []byte(script.String()+"}\n"))
	c.first("--extension", path)
	return err
}
