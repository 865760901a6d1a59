package natsstore

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"github.com/google/uuid"
	"github.com/nats-io/nats.go"

	"github.com/mortise-dev/mortise/mailbox"
)

// Headers and answers of live control.
const (
	kindHeader = "Mortise-Kind"
	// idHeader is a token of the id: a header changes line breaks, and spaces at its ends. Processes of earlier versions know plainHeader.
	idHeader    = "Mortise-Command"
	plainHeader = "Mortise-Id"
	// takeHeader says that somebody else listens now, and who.
	takeHeader = "Mortise-Take"
	accepted   = "1"
	refused    = "0"
)

// lines are the listeners of this process.
type lines struct {
	mu   sync.Mutex
	open map[mailbox.Target]*line
}

// line is one listener.
type line struct {
	id     string
	accept func(context.Context, mailbox.Command) bool
	sub    *nats.Subscription
	ctx    context.Context //nolint:containedctx // commands come for as long as the listener is there

	// mu is held while accept runs.
	mu   sync.Mutex
	gone bool
}

// Listen implements mailbox.Live.
func (s *Store) Listen(ctx context.Context, target mailbox.Target, accept func(context.Context, mailbox.Command) bool) (stop func(), err error) {
	l := &line{id: uuid.NewString(), accept: accept, ctx: context.WithoutCancel(ctx)}
	subject := s.names.live(target)
	if l.sub, err = s.nc.Subscribe(subject, l.hear); err != nil {
		return nil, fmt.Errorf("natsstore: listen: %w", err)
	}
	// Whoever listens to the same elsewhere gives way.
	take := nats.NewMsg(subject)
	take.Header.Set(takeHeader, l.id)
	flush, cancel := context.WithTimeout(ctx, s.cfg.Wait)
	defer cancel()
	if err := errors.Join(s.nc.PublishMsg(take), s.nc.FlushWithContext(flush)); err != nil {
		l.end()
		return nil, fmt.Errorf("natsstore: listen: %w", err)
	}
	s.lines.mu.Lock()
	former := s.lines.open[target]
	s.lines.open[target] = l
	s.lines.mu.Unlock()
	if former != nil {
		former.silence()
	}
	return func() {
		s.lines.mu.Lock()
		if s.lines.open[target] == l {
			delete(s.lines.open, target)
		}
		s.lines.mu.Unlock()
		l.end()
		_ = s.nc.FlushTimeout(s.cfg.Wait) // so that who asks next is told at once that nobody listens
	}, nil
}

// silence ends a line without waiting for a command under way.
func (l *line) silence() {
	_ = l.sub.Unsubscribe() // it may have ended
}

// end ends a line. When it returns, accept runs no more.
func (l *line) end() {
	l.silence()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.gone = true
}

// hear takes a command.
func (l *line) hear(msg *nats.Msg) {
	if who := msg.Header.Get(takeHeader); who != "" {
		if who != l.id {
			l.silence()
		}
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.gone {
		return
	}
	answer := refused
	c := mailbox.Command{Kind: mailbox.CommandKind(msg.Header.Get(kindHeader)), ID: commandID(msg.Header), Payload: msg.Data}
	if l.accept(l.ctx, c) {
		answer = accepted
	}
	_ = msg.Respond([]byte(answer)) // whoever asked takes silence for no
}

func commandID(h nats.Header) string {
	if len(h[idHeader]) == 0 {
		return h.Get(plainHeader)
	}
	return named(h.Get(idHeader))
}

// Deliver implements mailbox.Live.
func (s *Store) Deliver(ctx context.Context, t mailbox.Target, c mailbox.Command) (bool, error) {
	msg := nats.NewMsg(s.names.live(t))
	msg.Header.Set(kindHeader, string(c.Kind))
	msg.Header.Set(idHeader, token(c.ID))
	msg.Header.Set(plainHeader, c.ID)
	msg.Data = c.Payload
	if _, bounded := ctx.Deadline(); !bounded {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.Wait)
		defer cancel()
	}
	answer, err := s.nc.RequestMsgWithContext(ctx, msg)
	switch {
	case errors.Is(err, nats.ErrNoResponders):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("natsstore: deliver: %w", err)
	}
	return string(answer.Data) == accepted, nil
}
