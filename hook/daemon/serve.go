package daemon

import (
	"context"
	"errors"
	"io"
	"net"
	"time"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/frame"
)

// serve answers one client.
func (s *Server) serve(ctx context.Context, c *net.UnixConn) {
	defer c.Close()
	if err := frame.CheckPeer(c); err != nil {
		s.cfg.Logger.WarnContext(ctx, "refused a client", "error", err)
		return
	}
	begin := time.Now()
	if c.SetDeadline(begin.Add(helloTime)) != nil {
		return
	}
	h, err := frame.ReadHello(c)
	if err != nil {
		return
	}
	if h.Proto > frame.Proto || s.cfg.Outdated != nil && s.cfg.Outdated() {
		s.stop() // a newer daemon takes over
		_ = (&frame.Reply{Status: frame.StatusRestart}).Write(c)
		return
	}
	stdin, err := frame.Read(c, frame.MaxInput)
	if err != nil && !errors.Is(err, io.EOF) {
		return
	}
	wait := min(time.Duration(h.DeadlineMS)*time.Millisecond, maxDeadline)
	if c.SetDeadline(begin.Add(wait)) != nil {
		return
	}
	out := s.answer(ctx, h, stdin, begin.Add(max(wait-margin, wait/2)))
	_ = (&frame.Reply{Status: frame.StatusOK, Stdout: []byte(out)}).Write(c)
}

// answer handles an event, or answers by the policy what fails or is late.
func (s *Server) answer(ctx context.Context, h *frame.Hello, stdin []byte, deadline time.Time) string {
	ctx, cancel := context.WithDeadline(ctx, deadline)
	type result struct {
		out string
		err error
	}
	results := make(chan result, 1)
	s.conns.Go(func() {
		defer cancel()
		out, err := s.handle(ctx, h, stdin)
		results <- result{out, err}
	})
	err := context.DeadlineExceeded
	select {
	case r := <-results:
		if r.err == nil && len(r.out) <= frame.MaxOutput {
			return r.out
		}
		if err = r.err; err == nil {
			err = frame.ErrTooLarge
		}
	case <-ctx.Done():
		select { // both may be ready
		case r := <-results:
			if r.err == nil && len(r.out) <= frame.MaxOutput {
				return r.out
			}
		default:
		}
	}
	return s.byPolicy(ctx, h, err)
}

func (s *Server) handle(ctx context.Context, h *frame.Hello, stdin []byte) (string, error) {
	s.reload(ctx)
	select {
	case <-s.ready:
	case <-ctx.Done():
		return "", ctx.Err()
	}
	e := s.engine.Load()
	if e == nil {
		return "", errors.New("the plugins could not be loaded; mortise hook doctor shows why")
	}
	if l := s.loaded.Load(); l != nil {
		l.use.RLock()
		defer l.use.RUnlock()
	}
	return e.Handle(ctx, &hook.Request{Dialect: h.Dialect, Event: h.Event, Headless: h.Headless, Stdin: stdin})
}

// byPolicy is the answer of the policy file, with a record.
func (s *Server) byPolicy(ctx context.Context, h *frame.Hello, cause error) string {
	out, decision := "", DecisionOpen
	if p := s.rules.Load(); p != nil {
		if r, ok := p.Rule(h.Dialect, h.Event); ok {
			if out = r.Stdout; r.Closed {
				decision = DecisionClosed
			}
		}
	}
	s.cfg.Logger.WarnContext(ctx, "answered by policy", "dialect", h.Dialect, "event", h.Event, "error", cause)
	s.journal.add(&hook.Record{At: time.Now(), Dialect: h.Dialect, Event: h.Event, Decision: decision, Error: cause.Error()}, false)
	return out
}

// load loads for the first time.
func (s *Server) load(ctx context.Context) {
	s.loading.Lock()
	defer s.loading.Unlock()
	defer close(s.ready)
	s.replace(ctx)
}

// reload loads again when the config is another one. Events meanwhile use what is loaded.
func (s *Server) reload(ctx context.Context) {
	if s.cfg.Changed == nil {
		return
	}
	if now := s.print.Load(); now == nil || *now == s.cfg.Changed() || !s.loading.TryLock() {
		return
	}
	defer s.loading.Unlock()
	s.replace(context.WithoutCancel(ctx))
}

// replace loads, and takes over what was loaded. A config that is wrong changes nothing. S.loading is held.
func (s *Server) replace(ctx context.Context) {
	fingerprint := ""
	if s.cfg.Changed != nil {
		fingerprint = s.cfg.Changed()
	}
	s.print.Store(&fingerprint)
	next, err := s.cfg.Load(ctx)
	if err != nil {
		s.cfg.Logger.ErrorContext(ctx, "loading failed", "error", err)
		s.journal.add(&hook.Record{At: time.Now(), Event: "load", Decision: "failed", Error: err.Error()}, false)
		if s.engine.Load() == nil && s.rules.Load() == nil {
			_ = s.writePolicy(s.cfg.Policy(nil))
		}
		return
	}
	if e := s.engine.Load(); e != nil {
		e.Use(next.Program)
	} else {
		e, err := hook.New(hook.Config{
			Program: next.Program, States: s.states, Tickets: s.tickets, Profile: s.cfg.Dir, Logger: s.cfg.Logger,
			Record: func(r *hook.Record) { s.journal.add(r, s.loaded.Load().Full) },
		})
		if err != nil {
			s.cfg.Logger.ErrorContext(ctx, "loading failed", "error", err)
			return
		}
		defer s.engine.Store(e)
	}
	before := s.loaded.Swap(next)
	if err := s.writePolicy(s.cfg.Policy(next)); err != nil {
		s.cfg.Logger.ErrorContext(ctx, "the policy file could not be written", "error", err)
	}
	if before != nil {
		s.conns.Go(func() { _ = before.end(ctx) })
	}
}
