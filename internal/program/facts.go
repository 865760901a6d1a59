package program

import (
	"strings"

	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/serve"
)

// facts are what an operator asks for and the server does not know.
func (p *Program) facts() serve.Facts {
	now := p.now.Load()
	out := serve.Facts{Store: storeKind(p.Cfg.Store), Compactions: now.parts.Shared.limiter.Taken()}
	for _, h := range now.servers.health() {
		out.Servers = append(out.Servers, serve.ServerInfo{
			Name: h.Name, State: string(h.State), Tools: h.Tools, Restarts: h.Restarts, LastError: term.Clip(h.LastError, 500),
		})
	}
	return out
}

// storeKind is the kind of a store: memory, sqlite, nats or postgres.
func storeKind(name string) string {
	scheme, _, url := strings.Cut(name, "://")
	switch {
	case name == "":
		return "memory"
	case !url:
		return "sqlite"
	case strings.HasPrefix(scheme, "postgres"):
		return "postgres"
	default:
		return "nats"
	}
}
