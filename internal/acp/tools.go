package acp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/agent/mcp"
)

// Tools are those of the MCP servers that clients name for their sessions. The zero value is ready, and safe for concurrent use.
type Tools struct {
	Logger *slog.Logger

	mu      sync.Mutex
	servers map[string]*mcp.Servers // by thread
}

// Of returns the tools of a thread, or nil.
func (t *Tools) Of(thread string) agent.Tools {
	t.mu.Lock()
	defer t.mu.Unlock()
	if s := t.servers[thread]; s != nil {
		return s
	}
	return nil
}

// open starts the servers of a session, in place of those that it had. One that does not start is tried again in the background.
func (t *Tools) open(ctx context.Context, thread, dir string, list []sdk.McpServer) error {
	cfg := mcp.Config{Logger: t.Logger}
	for i := range list {
		s, err := serverOf(&list[i], dir)
		if err != nil {
			return err
		}
		cfg.Servers = append(cfg.Servers, s)
	}
	var next *mcp.Servers
	if len(list) > 0 {
		var err error
		if next, err = mcp.Open(context.WithoutCancel(ctx), cfg); err != nil {
			return errors.Join(invalid(fmt.Sprintf("an MCP server cannot be used: %.400s", err), "correct it in the client's settings, or disable it"), err)
		}
	}
	return t.put(ctx, thread, next)
}

// put replaces the servers of a thread, by none if next is nil.
func (t *Tools) put(ctx context.Context, thread string, next *mcp.Servers) error {
	t.mu.Lock()
	before := t.servers[thread]
	if t.servers == nil {
		t.servers = map[string]*mcp.Servers{}
	}
	if t.servers[thread] = next; next == nil {
		delete(t.servers, thread)
	}
	t.mu.Unlock()
	if before == nil {
		return nil
	}
	return before.Close(ctx) //nolint:wrapcheck // it names the server
}

// Close stops all servers.
func (t *Tools) Close(ctx context.Context) error {
	t.mu.Lock()
	all := t.servers
	t.servers = nil
	t.mu.Unlock()
	errs := []error{nil}
	for _, s := range all {
		errs = append(errs, s.Close(ctx))
	}
	return errors.Join(errs...)
}

// unnamable is what the name of a server may not have here.
var unnamable = regexp.MustCompile(`[^a-zA-Z0-9]+`)

// maxServerName is the size of the name of a server, in bytes.
const maxServerName = 32

func serverName(name string) string {
	name = strings.Trim(unnamable.ReplaceAllString(name, "-"), "-")
	return name[:min(len(name), maxServerName)]
}

func serverOf(s *sdk.McpServer, dir string) (mcp.ServerConfig, error) {
	switch {
	case s.Stdio != nil:
		out := mcp.ServerConfig{Name: serverName(s.Stdio.Name), Command: s.Stdio.Command, Args: s.Stdio.Args, Dir: dir, Env: map[string]string{}}
		for _, v := range s.Stdio.Env {
			out.Env[v.Name] = v.Value
		}
		return out, nil
	case s.Http != nil:
		out := mcp.ServerConfig{Name: serverName(s.Http.Name), URL: s.Http.Url, Headers: map[string]string{}}
		for _, h := range s.Http.Headers {
			out.Headers[h.Name] = h.Value
		}
		return out, nil
	default:
		return mcp.ServerConfig{}, invalid("an MCP server is reached in a way that is not supported", "use a command, or streamable HTTP")
	}
}
