package program

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/agent/mcp"
)

// servers are the MCP servers in the order of the config. Each is a set of its own, so that a
// reload starts and ends only what has changed.
type servers []*server

type server struct {
	*mcp.Servers

	cfg mcp.ServerConfig
}

// openServers starts the servers at once, except those that were started with the same config.
func openServers(ctx context.Context, cfg *Setup, logger *slog.Logger, before servers) (servers, error) {
	wanted, err := cfg.Mcp()
	if err != nil {
		return nil, err
	}
	out, errs := make(servers, len(wanted.Servers)), make([]error, len(wanted.Servers))
	var starts sync.WaitGroup
	for i, c := range wanted.Servers {
		if at := slices.IndexFunc(before, func(s *server) bool { return reflect.DeepEqual(s.cfg, c) }); at >= 0 {
			out[i] = before[at]
			continue
		}
		starts.Go(func() {
			all, err := mcp.Open(ctx, mcp.Config{Servers: []mcp.ServerConfig{c}, Logger: logger})
			if err != nil {
				errs[i] = err
				return
			}
			out[i] = &server{all, c}
		})
	}
	starts.Wait()
	out = slices.DeleteFunc(out, func(s *server) bool { return s == nil })
	return out, errors.Join(errs...)
}

// of returns the tools of some servers, of all without names.
func (s servers) of(names []string) agent.Tools {
	var tools []agent.Tools
	for _, one := range s {
		if len(names) == 0 || slices.Contains(names, one.cfg.Name) {
			tools = append(tools, one)
		}
	}
	if len(tools) == 0 {
		return nil
	}
	return agent.LayerTools(tools...)
}

// health reports on each server.
func (s servers) health() []mcp.Status {
	var out []mcp.Status
	for _, one := range s {
		out = append(out, one.Health()...)
	}
	return out
}

// closeExcept ends the servers that others do not have.
func (s servers) closeExcept(ctx context.Context, others servers) error {
	errs := make([]error, len(s))
	var ends sync.WaitGroup
	for i, one := range s {
		if !slices.Contains(others, one) {
			ends.Go(func() { errs[i] = one.Close(ctx) })
		}
	}
	ends.Wait()
	return errors.Join(errs...)
}
