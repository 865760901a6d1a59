package acp

import (
	"context"
	"crypto/rand"
	"path/filepath"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
)

// session is a thread that the client uses.
type session struct {
	id sdk.SessionId

	mu sync.Mutex
	// prompting is set while a prompt is under way, run is its run once it has one, and cancelled that the client cancelled it.
	prompting, cancelled bool
	run                  string
	stop                 context.CancelFunc // ends a question to the client, if there is one
}

// begin begins a prompt. It is false while there is another.
func (s *session) begin() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.prompting {
		return false
	}
	s.prompting, s.cancelled, s.run, s.stop = true, false, "", nil
	return true
}

func (s *session) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.prompting, s.stop = false, nil
}

// began notes the run of the prompt. It reports whether the prompt was cancelled before.
func (s *session) began(run string) (cancelled bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.run = run
	return s.cancelled
}

// asks notes how to end a question to the client.
func (s *session) asks(stop context.CancelFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stop = stop
	if s.cancelled {
		stop()
	}
}

// cancel cancels the prompt under way, and returns its run if it has one.
func (s *session) cancel() (run string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.prompting {
		return ""
	}
	s.cancelled = true
	if s.stop != nil {
		s.stop()
	}
	return s.run
}

func (s *session) wasCancelled() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cancelled
}

func (a *peer) session(id sdk.SessionId) (*session, error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if s := a.sessions[id]; s != nil {
		return s, nil
	}
	return nil, unknownSession(id)
}

// enter opens a session, unless the client has it open.
func (a *peer) enter(ctx context.Context, id sdk.SessionId, dir string, servers []sdk.McpServer) error {
	if !filepath.IsAbs(dir) {
		return invalid("cwd is not an absolute path", "")
	}
	if s, err := a.session(id); err == nil && !s.begin() {
		return sdk.NewInvalidRequest(map[string]any{"error": "a prompt of this session is under way", "hint": "cancel it first"})
	} else if err == nil {
		defer s.end()
	}
	if err := a.cfg.Tools.open(ctx, string(id), dir, servers); err != nil {
		return err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.sessions[id] == nil {
		a.sessions[id] = &session{id: id}
	}
	return nil
}

// NewSession implements [sdk.Agent].
func (a *peer) NewSession(ctx context.Context, p sdk.NewSessionRequest) (sdk.NewSessionResponse, error) {
	id := sdk.SessionId("acp-" + rand.Text())
	if err := a.enter(ctx, id, p.Cwd, p.McpServers); err != nil {
		return sdk.NewSessionResponse{}, err
	}
	return sdk.NewSessionResponse{SessionId: id}, nil
}

// CloseSession implements [sdk.Agent].
func (a *peer) CloseSession(ctx context.Context, p sdk.CloseSessionRequest) (sdk.CloseSessionResponse, error) {
	s, err := a.session(p.SessionId)
	if err != nil {
		return sdk.CloseSessionResponse{}, err
	}
	a.cancel(ctx, s)
	a.mu.Lock()
	delete(a.sessions, p.SessionId)
	a.mu.Unlock()
	if err := a.cfg.Tools.put(ctx, string(p.SessionId), nil); err != nil {
		a.cfg.Logger.WarnContext(ctx, "mcp_server_not_closed", "thread_id", p.SessionId, "error", err)
	}
	return sdk.CloseSessionResponse{}, nil
}

// Cancel implements [sdk.Agent].
func (a *peer) Cancel(ctx context.Context, p sdk.CancelNotification) error {
	s, err := a.session(p.SessionId)
	if err == nil {
		a.cancel(ctx, s)
	}
	return err
}

func (a *peer) cancel(ctx context.Context, s *session) {
	if run := s.cancel(); run != "" {
		a.cancelRun(ctx, run)
	}
}

func (a *peer) cancelRun(ctx context.Context, run string) {
	if _, err := a.cfg.Mailbox.CancelRun(context.WithoutCancel(ctx), run); err != nil {
		a.cfg.Logger.WarnContext(ctx, "run_not_cancelled", "run_id", run, "error", err)
	}
}
