package serve

import (
	"context"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// Status is what GET /v1/status answers. Executing, Streams, Compactions, Modules and Servers are those of this
// process; the store's counts are of all processes.
type Status struct {
	Version     string         `json:"version"`
	StartedAt   time.Time      `json:"started_at"`
	Uptime      int64          `json:"uptime_seconds"`
	Draining    bool           `json:"draining"`
	Store       string         `json:"store,omitempty" doc:"The kind of store."`
	StoreError  string         `json:"store_error,omitempty" doc:"Why the store cannot be used, and since when."`
	Paused      bool           `json:"paused" doc:"Whether an operator has paused the queue of all processes."`
	Tenants     []string       `json:"paused_tenants" doc:"The tenants whose threads are paused."`
	Streams     int            `json:"streams" doc:"Event streams that are open."`
	Executing   int            `json:"executing" doc:"Runs that this process executes."`
	Queued      int            `json:"queued" doc:"Requests that wait for their turn, of all processes."`
	DeadLetters int            `json:"dead_letters" doc:"Requests that failed for good."`
	Dispatches  map[string]int `json:"dispatches" doc:"Requests in the store by status, of all processes."`
	Claims      map[string]int `json:"claims" doc:"Threads that are executed by tenant, of all processes."`
	Compactions int            `json:"compactions" doc:"Compactions under way."`
	Agents      []AgentInfo    `json:"agents"`
	Modules     []Module       `json:"modules" doc:"Plugins and policies."`
	Servers     []ServerInfo   `json:"mcp_servers"`
}

// Facts are what a [Status] has of things that the server does not know. Store is a kind, as "sqlite".
type Facts struct {
	Store       string
	Compactions int
	Servers     []ServerInfo
}

// ServerInfo is an MCP server.
type ServerInfo struct {
	Name      string `json:"name"`
	State     string `json:"state"`
	Tools     int    `json:"tools" doc:"How many it offers."`
	Restarts  int    `json:"restarts"`
	LastError string `json:"last_error,omitempty" doc:"Why it ended or did not start the last time."`
}

type statusOutput struct{ Body Status }

func (s *Server) status(ctx context.Context, _ *struct{}) (*statusOutput, error) {
	if err := s.box().Health(); err != nil {
		return &statusOutput{s.degraded(err)}, nil
	}
	paused, tenants, err := s.pausedTenants(ctx)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	counts, err := s.box().Count(ctx)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	claims, err := s.box().Claims(ctx)
	if err != nil {
		return nil, s.failure(ctx, err)
	}
	out := &statusOutput{s.local()}
	b := &out.Body
	b.Queued, b.DeadLetters, b.Claims = counts[mailbox.Queued], counts[mailbox.DeadLetter], claims
	b.Paused, b.Tenants = paused, tenants
	for status, n := range counts {
		b.Dispatches[string(status)] = n
	}
	if s.cfg.Modules != nil {
		b.Modules = append(b.Modules, s.cfg.Modules.List(ctx)...)
	}
	if s.cfg.Facts != nil {
		f := s.cfg.Facts()
		b.Store, b.Compactions, b.Servers = f.Store, f.Compactions, append(b.Servers, f.Servers...)
	}
	return out, nil
}

// local is the status as far as the store is not asked.
func (s *Server) local() Status {
	b := Status{
		Version: s.cfg.Version, StartedAt: s.started.UTC(), Uptime: int64(s.cfg.Now().Sub(s.started).Seconds()), Executing: len(s.box().Executing()),
		Dispatches: map[string]int{}, Claims: map[string]int{}, Tenants: []string{}, Agents: append([]AgentInfo{}, s.access.Load().agents...),
		Modules: []Module{}, Servers: []ServerInfo{},
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	b.Draining, b.Streams = s.drained, len(s.streams)
	return b
}

// degraded is the status while the store cannot be used. What the store says of itself is for the log.
func (s *Server) degraded(err error) Status {
	b := s.local()
	b.StoreError, _, _ = strings.Cut(strings.TrimPrefix(err.Error(), "mailbox: "), "Z: ")
	if s.cfg.Facts != nil {
		b.Store = s.cfg.Facts().Store
	}
	return b
}
