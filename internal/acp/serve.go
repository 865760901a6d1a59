package acp

import (
	"bufio"
	"context"
	"errors"
	"io"
	"log/slog"
	"sync"

	sdk "github.com/coder/acp-go-sdk"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/serve"
)

// Config is what is served. All fields but Agent, Kind and Version are required.
type Config struct {
	// Server follows runs; it need not listen. Mailbox is its runtime's.
	Server  *serve.Server
	Mailbox *mailbox.Mailbox
	// Tools has the tools of the sessions' MCP servers, see [Tools].
	Tools *Tools
	// Agent of new runs; the runtime's default one when empty.
	Agent string
	// Kind is what a tool does; nil knows of none.
	Kind    func(tool string) abi.ToolKind
	Version string
	Logger  *slog.Logger
}

// Serve talks to a client until its input ends, or ctx is done. Runs that are under way then stay so.
func Serve(ctx context.Context, cfg Config, in io.Reader, out io.Writer) error {
	ready := make(chan struct{})
	w := &output{w: out}
	a := &peer{cfg: cfg, sessions: map[sdk.SessionId]*session{}}
	input := &lines{in: bufio.NewReader(in), out: w, ready: ready}
	a.conn = sdk.NewAgentSideConnection(a, w, input)
	a.conn.SetLogger(slog.New(slog.DiscardHandler)) // it logs payloads
	close(ready)
	select {
	case <-ctx.Done():
	case <-a.conn.Done():
	}
	return cfg.Tools.Close(context.WithoutCancel(ctx))
}

// peer is the agent's side of the connection.
type peer struct {
	cfg  Config
	conn *sdk.AgentSideConnection

	mu       sync.Mutex
	sessions map[sdk.SessionId]*session
}

// codeNotFound is the protocol's code for an object that is not there.
const codeNotFound = -32002

func unknownSession(id sdk.SessionId) error {
	return &sdk.RequestError{Code: codeNotFound, Message: "Resource not found", Data: map[string]any{
		"error": "there is no such session", "sessionId": id, "hint": "begin one with session/new, or load one of the agent's store",
	}}
}

// invalid refuses a request, with the reason.
func invalid(why, hint string) error {
	return sdk.NewInvalidParams(map[string]any{"error": why, "hint": hint})
}

// Initialize implements [sdk.Agent].
func (a *peer) Initialize(_ context.Context, _ sdk.InitializeRequest) (sdk.InitializeResponse, error) {
	title := "Mortise"
	return sdk.InitializeResponse{
		ProtocolVersion: sdk.ProtocolVersionNumber,
		AgentInfo:       &sdk.Implementation{Name: "mortise", Title: &title, Version: a.cfg.Version},
		AuthMethods:     []sdk.AuthMethod{},
		AgentCapabilities: sdk.AgentCapabilities{
			LoadSession:         true,
			McpCapabilities:     sdk.McpCapabilities{Http: true},
			PromptCapabilities:  sdk.PromptCapabilities{Image: true, Audio: true, EmbeddedContext: true},
			SessionCapabilities: sdk.SessionCapabilities{Close: &sdk.SessionCloseCapabilities{}},
		},
	}, nil
}

// Authenticate implements [sdk.Agent].
func (*peer) Authenticate(context.Context, sdk.AuthenticateRequest) (sdk.AuthenticateResponse, error) {
	return sdk.AuthenticateResponse{}, invalid("there are no methods to authenticate by", "the keys of models are in the agent's configuration")
}

// ListSessions implements [sdk.Agent].
func (*peer) ListSessions(context.Context, sdk.ListSessionsRequest) (sdk.ListSessionsResponse, error) {
	return sdk.ListSessionsResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionList)
}

// ResumeSession implements [sdk.Agent].
func (*peer) ResumeSession(context.Context, sdk.ResumeSessionRequest) (sdk.ResumeSessionResponse, error) {
	return sdk.ResumeSessionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionResume)
}

// SetSessionConfigOption implements [sdk.Agent].
func (*peer) SetSessionConfigOption(context.Context, sdk.SetSessionConfigOptionRequest) (sdk.SetSessionConfigOptionResponse, error) {
	return sdk.SetSessionConfigOptionResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionSetConfigOption)
}

// SetSessionMode implements [sdk.Agent].
func (*peer) SetSessionMode(context.Context, sdk.SetSessionModeRequest) (sdk.SetSessionModeResponse, error) {
	return sdk.SetSessionModeResponse{}, sdk.NewMethodNotFound(sdk.AgentMethodSessionSetMode)
}

// failure makes an error of the mailbox, or of what is below it, one for the client.
func failure(err error) error {
	var refused *sdk.RequestError
	switch {
	case err == nil || errors.As(err, &refused):
		return err
	case errors.Is(err, serve.ErrDraining) || errors.Is(err, mailbox.ErrShutdown):
		return sdk.NewInternalError(map[string]any{"error": "the agent is shutting down", "hint": "load the session again"})
	case errors.Is(err, mailbox.ErrBusy):
		return sdk.NewInvalidRequest(map[string]any{"error": "the session's run does not yield", "hint": "try again in a moment"})
	case errors.Is(err, mailbox.ErrTooLarge):
		return invalid("the prompt is too large", "leave some of it out")
	}
	return sdk.NewInternalError(map[string]any{"error": "the store does not respond", "hint": "see the agent's log, on its standard error"})
}

var _ interface {
	sdk.Agent
	sdk.AgentLoader
} = (*peer)(nil)
