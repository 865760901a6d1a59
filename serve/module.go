package serve

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/mortise-dev/mortise/compaction/trial"
)

// Modules are the loaded plugins and policies. It is safe for concurrent use.
type Modules interface {
	List(ctx context.Context) []Module
	// Swap replaces a module with other bytes, and RollBack with those before. Their errors are
	// [*Refused] if the client is to see them.
	Swap(ctx context.Context, name string, wasm []byte) (Swapped, error)
	RollBack(ctx context.Context, name string) (Swapped, error)
	// History is oldest first.
	History(name string) []Change
}

// RolePlugin is the role of modules that are plugins. Others are policies.
const RolePlugin = "plugin"

// Module is a loaded module.
type Module struct {
	Name      string   `json:"name"`
	Role      string   `json:"role" enum:"plugin,summarizer,fallback,admission"`
	Policy    string   `json:"policy,omitempty" doc:"What becomes of a run when it fails."`
	Version   string   `json:"version,omitempty"`
	SHA256    string   `json:"sha256,omitempty"`
	Engine    string   `json:"engine,omitempty"`
	Grants    []string `json:"grants,omitempty"`
	State     string   `json:"state,omitempty"`
	Calls     int64    `json:"calls"`
	Failures  int64    `json:"failures"`
	Swaps     int64    `json:"swaps"`
	RollBacks int64    `json:"rollbacks"`
	LastError string   `json:"last_error,omitempty"`
}

// Swapped is what a module was replaced with, by SHA-256.
type Swapped struct {
	From  string        `json:"from"`
	To    string        `json:"to"`
	Trial *trial.Report `json:"trial,omitempty" doc:"How a policy and the one before did on recorded requests, side by side."`
}

// Change is one in the history of a module.
type Change struct {
	At     time.Time `json:"at"`
	From   string    `json:"from,omitempty"`
	To     string    `json:"to,omitempty"`
	Kind   string    `json:"kind" enum:"swapped,refused,rolled_back"`
	Reason string    `json:"reason,omitempty"`
}

// Refused is why a change was refused, in words for the client.
//
//nolint:errname // it is a result, too
type Refused struct{ Reason, Hint string }

// Error implements error.
func (r *Refused) Error() string { return r.Reason }

type modulesOutput struct {
	Body struct {
		Modules []Module `json:"modules"`
	}
}

type moduleInput struct {
	Name string `path:"name" maxLength:"256"`
}

type swapInput struct {
	Name    string `path:"name" maxLength:"256"`
	RawBody []byte `contentType:"application/wasm"`
}

type swappedOutput struct{ Body Swapped }

type historyOutput struct {
	Body struct {
		Changes []Change `json:"changes" doc:"Oldest first."`
	}
}

// modules are the routes of plugins, or of policies, which clients also name by their role.
type modules struct {
	s        *Server
	policies bool
}

func (s *Server) moduleRoutes(api huma.API, base, noun string, policies bool) {
	m := modules{s: s, policies: policies}
	list := s.operation(http.MethodGet, base, "list-"+noun, ScopeAdmin, "Loaded modules: "+noun)
	register(api, list, m.list)
	swap := s.operation(http.MethodPut, base+"/{name}", "swap-"+noun, ScopeAdmin, "Replace a module with other bytes, if they pass their trial")
	register(api, swap, m.swap)
	back := s.operation(http.MethodPost, base+"/{name}/rollback", "roll-back-"+noun, ScopeAdmin, "Return to the bytes before")
	register(api, back, m.rollBack)
	history := s.operation(http.MethodGet, base+"/{name}/history", "history-"+noun, ScopeAdmin, "What became of a module")
	register(api, history, m.history)
}

func (m modules) all(ctx context.Context) []Module {
	return slices.DeleteFunc(slices.Clone(m.s.cfg.Modules.List(ctx)), func(o Module) bool { return (o.Role != RolePlugin) != m.policies })
}

func (m modules) list(ctx context.Context, _ *struct{}) (*modulesOutput, error) {
	out := &modulesOutput{}
	out.Body.Modules = append([]Module{}, m.all(ctx)...)
	return out, nil
}

// name is that of the module which a client names.
func (m modules) name(ctx context.Context, name string) (string, error) {
	list := m.all(ctx)
	i := slices.IndexFunc(list, func(o Module) bool { return o.Name == name })
	if i < 0 && m.policies {
		i = slices.IndexFunc(list, func(o Module) bool { return o.Role == name })
	}
	if i < 0 {
		return "", notFound("module", name)
	}
	return list[i].Name, nil
}

func (m modules) swap(ctx context.Context, in *swapInput) (*swappedOutput, error) {
	name, err := m.name(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	out, err := m.s.cfg.Modules.Swap(ctx, name, slices.Clone(in.RawBody)) // the body's memory is used again
	return m.swapped(ctx, false, name, out, err)
}

func (m modules) rollBack(ctx context.Context, in *moduleInput) (*swappedOutput, error) {
	name, err := m.name(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	out, err := m.s.cfg.Modules.RollBack(ctx, name)
	return m.swapped(ctx, true, name, out, err)
}

func (m modules) swapped(ctx context.Context, back bool, name string, out Swapped, err error) (*swappedOutput, error) {
	if err != nil {
		return nil, m.s.refusal(ctx, err, "the module")
	}
	m.s.cfg.Logger.InfoContext(ctx, "module_swapped", "module", name, "rolled_back", back, "from", out.From, "to", out.To, "caller", callerOf(ctx))
	return &swappedOutput{Body: out}, nil
}

func (m modules) history(ctx context.Context, in *moduleInput) (*historyOutput, error) {
	name, err := m.name(ctx, in.Name)
	if err != nil {
		return nil, err
	}
	out := &historyOutput{}
	out.Body.Changes = append([]Change{}, m.s.cfg.Modules.History(name)...)
	return out, nil
}

// refusal is the problem of a change that an operator asked for.
func (s *Server) refusal(ctx context.Context, err error, what string) error {
	if r, ok := errors.AsType[*Refused](err); ok {
		return problem(http.StatusUnprocessableEntity, r.Reason, r.Hint)
	}
	s.cfg.Logger.ErrorContext(ctx, "change_failed", "what", what, "error", err, "caller", callerOf(ctx))
	return problem(http.StatusInternalServerError, what+" was not changed", "see the log of the server")
}
