package serve

import (
	"context"
	"fmt"
	"slices"
)

// access is who may use the server and for what. It does not change.
type access struct {
	keys           *keyring
	origins, hosts []string
	agents         []AgentInfo
}

func accessOf(c *Config) *access {
	return &access{
		keys: newKeyring(c.Tokens), origins: slices.Clone(c.Origins), hosts: slices.Clone(c.Hosts), agents: slices.Clone(c.Agents),
	}
}

// CheckAccess returns the error that [Server.Reconfigure] would return.
func (c *Config) CheckAccess() error {
	for i, t := range c.Tokens {
		if err := t.check(); err != nil {
			return fmt.Errorf("Config.Tokens[%d] %.80q: %w", i, t.Name, err)
		}
	}
	for _, o := range c.Origins {
		if !validOrigin(o) {
			return fmt.Errorf("Config.Origins: %.200q is not an origin: write it as https://app.example.com", o)
		}
	}
	return nil
}

// Reconfigure replaces Agents, Tokens, Origins and Hosts by those of cfg, whose other fields it
// does not read. Requests that have been admitted and open streams are not affected. After an error nothing
// has changed. It is safe for concurrent use.
func (s *Server) Reconfigure(cfg Config) error {
	if err := cfg.CheckAccess(); err != nil {
		return fmt.Errorf("serve: %w", err)
	}
	s.access.Store(accessOf(&cfg))
	return nil
}

// agent reports whether requests may name an agent.
func (a *access) agent(name string) bool {
	return name == "" || len(a.agents) == 0 || slices.ContainsFunc(a.agents, func(o AgentInfo) bool { return o.Name == name })
}

func (a *access) agentNames() (names []string) {
	for _, o := range a.agents {
		names = append(names, o.Name)
	}
	slices.Sort(names)
	return names
}

type accessKey struct{}

// accessIn is the same for all checks of a request.
func accessIn(ctx context.Context) *access {
	a, _ := ctx.Value(accessKey{}).(*access)
	return a
}

// open reports whether no token is needed.
func (a *access) open() bool { return len(a.keys.tokens) == 0 }
