package hookcmd

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/google/uuid"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/hook/mcpproxy"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/egress"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/phases"
)

const mcpLong = `Start an MCP server and stand between it and its client: plugins gate and rewrite tool calls and
reads of resources and prompts, and replace their results, also structured ones. All other messages
pass byte for byte. Write it where the client's config has the server's command:

  mortise mcp -- npx some-server --its-flags

A server elsewhere is named by its URL, which is spoken to over Streamable HTTP. Values of headers are
in the environment or in files of mode 600, never on the command line:

  mortise mcp --url https://host/mcp --header Authorization=env:HOST_AUTHORIZATION

A project may set variables of its agent's servers: with --config and --profile, written as whole paths, no variable
decides what runs.

mortise mcp serve is an MCP server whose tools are those of the plugins.`

type mcpOptions struct {
	*hookOptions

	name, url  string
	headers    []string
	pin, plain bool
}

// NewMCP makes mortise mcp.
func NewMCP(s command.Streams) *cobra.Command {
	o := mcpOptions{hookOptions: &hookOptions{links: s.Links, notes: s.Err}}
	cmd := &cobra.Command{
		Use: "mcp -- SERVER [ARGUMENTS]", Short: "Wrap an MCP server with plugins, or serve their tools", Long: mcpLong,
		Args: func(cmd *cobra.Command, args []string) error {
			if o.url != "" {
				return command.TakesNone(cmd, args)
			}
			return command.TakesSome("SERVER")(cmd, args)
		},
		RunE: func(cmd *cobra.Command, args []string) error { return runMCP(cmd.Context(), s, &o, args) },
	}
	f := cmd.PersistentFlags()
	command.ConfigFlag(f, &o.config, " if its hooks are installed, or that of the user")
	f.StringVar(&o.profile, "profile", "", "folder of tickets and pins")
	cmd.Flags().StringVar(&o.name, "name", "", "name of the server for plugins (default: of its command, or the host of its URL)")
	cmd.Flags().StringVar(&o.url, "url", "", "server over Streamable HTTP, in place of a command")
	cmd.Flags().StringArrayVar(&o.headers, "header", nil, "header for the server of --url: NAME=env:VARIABLE or NAME=file:PATH")
	cmd.Flags().BoolVar(&o.plain, "plain", false, "allow --url to be http beyond this machine")
	cmd.Flags().BoolVar(&o.pin, "pin", false, "deny calls of tools whose description changed since they were first seen")
	cmd.AddCommand(&cobra.Command{
		Use: "serve", Short: "Serve the plugins' tools over MCP on standard streams", Args: command.TakesNone,
		RunE: func(cmd *cobra.Command, _ []string) error { return runMCPServe(cmd.Context(), s, &o) },
	})
	return cmd
}

func runMCP(ctx context.Context, s command.Streams, o *mcpOptions, args []string) error {
	remote, err := o.remote()
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	var name, identity string
	if remote == nil {
		name, identity = strings.TrimSuffix(filepath.Base(args[0]), filepath.Ext(args[0])), strings.Join(args, "\x00")
	} else {
		name, identity = remote.URL.Hostname(), "url\x00"+o.url
	}
	p, err := o.open()
	if err != nil {
		return err
	}
	p.note(s.Err)
	logger := program.Logger(s.Err, warnLevel)
	h, err := p.load(ctx, logger, nil)
	if err != nil {
		return err
	}
	defer h.Close(context.WithoutCancel(ctx))
	if err := os.MkdirAll(p.dir, 0o700); err != nil {
		return exit.With(exit.Config, err)
	}
	pinned := filepath.Join(p.dir, "mcp-"+program.HexSum([]byte(identity))[:12]+".json")
	pins, err := mcpproxy.OpenPins(pinned, o.pin, func() (io.Closer, error) { return program.Lock(pinned) })
	if err != nil {
		return exit.With(exit.Config, err)
	}
	proxy, err := h.mcpProxy(p, cmp.Or(o.name, name), pins, logger)
	if err != nil {
		return err
	}
	if remote == nil {
		return wrapServer(ctx, s, proxy, args)
	}
	remote.Logger = logger
	server, err := mcpproxy.Connect(ctx, *remote)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	defer server.Close()
	return exit.With(exit.Run, proxy.Run(ctx, s.In, s.Out, server, server))
}

// remote is the server of --url, nil for a command.
func (o *mcpOptions) remote() (*mcpproxy.RemoteConfig, error) {
	if o.url == "" {
		if len(o.headers) > 0 || o.plain {
			return nil, errors.New("--header and --plain belong to --url")
		}
		return nil, nil //nolint:nilnil // there is none
	}
	address, err := egress.Endpoint(o.url, o.plain)
	if err != nil {
		return nil, fmt.Errorf("--url: %w", err)
	}
	out := &mcpproxy.RemoteConfig{URL: address, Headers: map[string]string{}}
	for _, h := range o.headers {
		name, source, _ := strings.Cut(h, "=")
		key := config.KeyConfig{}
		switch kind, from, _ := strings.Cut(source, ":"); {
		case kind == "env" && from != "":
			key.Env = from
		case kind == "file" && from != "":
			if key.File, err = filepath.Abs(from); err != nil {
				return nil, err
			}
		default: // which may have a secret in it
			return nil, errors.New("--header: write NAME=env:VARIABLE or NAME=file:PATH; other users of this machine can read a command line")
		}
		if out.Headers[name], err = key.Read(&config.Config{}); err != nil {
			return nil, fmt.Errorf("--header %.80q: %w", name, err)
		}
	}
	return out, nil
}

// mcpProxy makes a proxy that has the plugins look at the calls of a server.
func (h *hookParts) mcpProxy(p *hookProfile, name string, pins *mcpproxy.Pins, logger *slog.Logger) (*mcpproxy.Proxy, error) {
	engine, err := hook.New(hook.Config{
		Program: h.program, Tickets: hook.NewTickets(filepath.Join(p.dir, daemon.TicketFolder)), Logger: logger,
	})
	if err != nil {
		return nil, err
	}
	cwd, err := os.Getwd()
	if err != nil {
		return nil, exit.With(exit.Config, err)
	}
	return mcpproxy.New(mcpproxy.Config{Engine: engine, Server: name, Session: uuid.NewString(), Cwd: cwd, Pins: pins, Logger: logger})
}

// serverEnd is how long a server may take to end when its client has gone.
const serverEnd = 5 * time.Second

// wrapServer runs the server. Its standard error and its exit code are passed on.
func wrapServer(ctx context.Context, s command.Streams, proxy *mcpproxy.Proxy, args []string) error {
	cmd := exec.CommandContext(ctx, args[0], args[1:]...)
	cmd.Stderr, cmd.WaitDelay = s.Err, serverEnd
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	in, err := cmd.StdinPipe()
	if err != nil {
		return exit.With(exit.Run, err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return exit.With(exit.Run, err)
	}
	if err := cmd.Start(); err != nil {
		return exit.With(exit.Usage, fmt.Errorf("%s: %w", args[0], err))
	}
	failed := proxy.Run(ctx, s.In, s.Out, out, in)
	_ = in.Close()
	_, _ = io.Copy(io.Discard, out)
	err = cmd.Wait()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() > 0 {
		return exit.With(exit.Code(ended.ExitCode()), fmt.Errorf("%s: %w", args[0], err))
	}
	return exit.With(exit.Run, errors.Join(failed, err))
}

// runMCPServe serves the plugins' tools. Their calls pass the plugins as those of other servers do.
func runMCPServe(ctx context.Context, s command.Streams, o *mcpOptions) error {
	p, err := o.open()
	if err != nil {
		return err
	}
	p.note(s.Err)
	logger := program.Logger(s.Err, warnLevel)
	h, err := p.load(ctx, logger, nil)
	if err != nil {
		return err
	}
	defer h.Close(context.WithoutCancel(ctx))
	proxy, err := h.mcpProxy(p, "mortise", nil, logger)
	if err != nil {
		return err
	}
	server := sdk.NewServer(&sdk.Implementation{Name: "mortise", Version: program.Version()}, nil)
	for _, t := range h.Tools.Tools() {
		schema := map[string]any{"type": "object"} // which MCP demands
		given, ok := t.Parameters.(map[string]any)
		maps.Copy(schema, given)
		if !ok && t.Parameters != nil || schema["type"] != "object" {
			return exit.With(exit.Config, fmt.Errorf("the parameters of the tool %.80q are no object, so MCP has no form for it", t.Name))
		}
		server.AddTool(&sdk.Tool{Name: t.Name, Description: t.Description, InputSchema: schema}, h.callTool)
	}
	in, toServer := io.Pipe()
	fromServer, out := io.Pipe()
	served := make(chan error, 1)
	go func() {
		err := server.Run(ctx, &sdk.IOTransport{Reader: in, Writer: out})
		_ = out.Close()
		served <- err
	}()
	err = errors.Join(proxy.Run(ctx, s.In, s.Out, fromServer, toServer), in.Close())
	if end := <-served; !errors.Is(end, io.EOF) && !errors.Is(end, context.Canceled) {
		err = errors.Join(err, end)
	}
	return exit.With(exit.Run, err)
}

// callTool has a plugin execute a call.
func (h *hookParts) callTool(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	arguments, err := hook.DecodeJSON(r.Params.Arguments)
	if err != nil {
		return failedTool(err), nil
	}
	result, err := h.Tools.CallTool(ctx, abi.ToolCall{ID: uuid.NewString(), Name: r.Params.Name, Arguments: arguments})
	if err != nil {
		return failedTool(err), nil
	}
	out := &sdk.CallToolResult{IsError: result.Status == abi.ToolError}
	m := abi.Message{Content: phases.ResultContent(&result)}
	out.Content = []sdk.Content{&sdk.TextContent{Text: m.Text()}}
	if object, ok := result.Data.(map[string]any); ok {
		out.StructuredContent = object
	}
	return out, nil
}

func failedTool(err error) *sdk.CallToolResult {
	return &sdk.CallToolResult{IsError: true, Content: []sdk.Content{&sdk.TextContent{Text: exit.Text(err)}}}
}
