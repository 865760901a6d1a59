package proxy

import (
	"context"
	"errors"
	"net/http"
	"runtime/debug"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// failsClosed returns a plugin that fails closed and reads requests or answers or decides about calls, or nothing. What the plugins cannot see is
// refused then: a key in a body that is not read could not be taken out, nor a call of its answer be stopped.
func (s *Server) failsClosed() string {
	return s.closedAt(abi.RunStart, abi.StepStart, abi.BeforeInference, abi.AfterToolExecute, abi.ToolGate, abi.BeforeToolExecute, abi.AfterInference)
}

func (s *Server) closedAt(list ...abi.Phase) string {
	if s.cfg.Runtime == nil {
		return ""
	}
	for _, p := range list {
		if name := s.cfg.Runtime.FailsClosed(p); name != "" {
			return name
		}
	}
	return ""
}

// refuse answers for a plugin that cannot see a request or an answer.
func (s *Server) refuse(ctx context.Context, w http.ResponseWriter, p wire.Protocol, plugin string) {
	s.stats.refused.Add(1)
	s.cfg.Logger.WarnContext(ctx, "unreadable_refused", "plugin", plugin)
	fail(w, p, http.StatusForbidden, unreadable(plugin))
}

func unreadable(plugin string) string {
	return "mortise: plugin " + plugin + " fails closed, and what it has to see cannot be read"
}

// guarded keeps what goes wrong with us from the client: the original goes through, unless a plugin fails closed.
func (x *exchange) guarded(ctx context.Context, do func()) {
	defer func() {
		if v := recover(); v != nil {
			x.s.stats.panics.Add(1)
			x.s.cfg.Logger.ErrorContext(ctx, "proxy_panicked", "panic", v, "stack", string(debug.Stack()))
			x.acted, x.body, x.gates, x.replaces, x.hidden = false, nil, false, false, nil
			if plugin := x.s.failsClosed(); plugin != "" && x.why == "" {
				x.refusal = unreadable(plugin)
			}
		}
	}()
	do()
}

// refused turns the error of a phase into a refusal, if it is a plugin's.
func (x *exchange) refused(ctx context.Context, err error) {
	if hook, ok := errors.AsType[*phases.HookError](err); ok {
		x.s.stats.refused.Add(1)
		x.refusal = "mortise: plugin " + hook.Plugin + " refuses the request at " + string(hook.Phase)
		x.s.cfg.Logger.WarnContext(ctx, "request_refused", "plugin", hook.Plugin, "phase", string(hook.Phase), "error", hook.Err)
	}
}
