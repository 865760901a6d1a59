package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// retryMS is how soon a client connects again, in milliseconds.
const retryMS = 1000

// errDraining ends streams when the server shuts down.
var errDraining = errors.New("the server is shutting down")

// crowded refuses a stream for which there is no place. The caller holds the lock.
func (s *Server) crowded() *Problem {
	switch {
	case s.drained:
		return draining()
	case s.cfg.Limits.Streams > 0 && len(s.streams) >= s.cfg.Limits.Streams:
		return problem(http.StatusTooManyRequests, "too many streams are open", "close some, or wait").later(1)
	}
	return nil
}

// enter takes a place for a stream. The stream ends with its context.
func (s *Server) enter(ctx context.Context) (_ context.Context, leave func(), p *Problem) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.crowded(); p != nil {
		return nil, nil, p
	}
	ctx, cancel := context.WithCancelCause(ctx)
	s.number++
	number := s.number
	s.streams[number] = cancel
	s.open.Add(1)
	return ctx, func() {
		defer s.open.Done()
		cancel(nil)
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.streams, number)
	}, nil
}

// stream answers a request with the events of a run. It reports whether the client left before
// the end.
func (s *Server) stream(ctx context.Context, w http.ResponseWriter, run mailbox.Run, v view) (left bool) {
	h := w.Header()
	h.Set("Location", runPath(run.ID))
	ctx, leave, p := s.enter(ctx)
	if p != nil {
		p.write(w)
		return false
	}
	defer leave()
	out := &sse{w: w, heartbeat: s.cfg.Limits.Heartbeat}
	h.Set("Content-Type", "text/event-stream")
	h.Set("X-Accel-Buffering", "no") // for proxies
	w.WriteHeader(http.StatusOK)
	f := &follower{s: s, run: run.ID, thread: run.Thread, at: v.after, send: out.send, idle: out.idle}
	if v.format == formatAGUI {
		translated := newAGUI(out, run, v, func(dispatch string) {
			_, _ = s.box().Await(ctx, dispatch) // else the answer is queued
		})
		f.at, f.send = translated.from(), translated.send
	}
	err := out.write(fmt.Appendf(nil, "retry: %d\n\n", retryMS))
	if err == nil {
		err = f.follow(ctx)
	}
	switch {
	case err == nil, errors.Is(err, errDraining), errors.Is(err, errAsked):
		return false
	case errors.Is(err, errSlow):
		s.cfg.Logger.InfoContext(ctx, "slow_reader_cut", "run_id", run.ID, "thread_id", run.Thread)
		return false
	case ctx.Err() != nil, errors.Is(err, errGone):
		return true
	}
	_ = s.failure(ctx, err) // logged; the client connects again
	return false
}

// view is what a client wants to see of a run.
type view struct {
	after  position
	format string
	// untilAsked ends a stream of [formatAGUI] when the run asks for a decision. shownAs is the id that the run has in it.
	untilAsked bool
	shownAs    string
}

// errGone is a client that has left, or that does not read.
var errGone = errors.New("the client has left")

// sse writes server-sent events. It is not safe for concurrent use.
type sse struct {
	w   http.ResponseWriter
	buf bytes.Buffer
	// heartbeat is how long it is silent at most, last when it was not.
	heartbeat time.Duration
	last      time.Time
}

func (o *sse) send(f frame) error {
	data, err := json.Marshal(f.data)
	if err != nil {
		return err //nolint:wrapcheck // it cannot be: all of it was JSON
	}
	o.buf.Reset()
	fmt.Fprintf(&o.buf, "id: %s\nevent: %s\ndata: %s\n\n", f.id, f.name, data)
	return o.write(o.buf.Bytes())
}

// idle sends a comment, so that the connection is known to be alive.
func (o *sse) idle() error {
	if time.Since(o.last) < o.heartbeat {
		return nil
	}
	return o.write([]byte(":\n\n"))
}

func (o *sse) write(data []byte) error {
	o.last = time.Now()
	if _, err := o.w.Write(data); err != nil {
		return errGone
	}
	if err := http.NewResponseController(o.w).Flush(); err != nil {
		return errGone
	}
	return nil
}
