package mcpproxy

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/mortise-dev/mortise/internal/egress"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// How a stream is resumed: after a delay that doubles, the first one by the server's wish. The stream of an answer is given up after some
// attempts in a row that brought nothing; the other one, which proxies close when it is idle, never.
const (
	firstDelay, minDelay, maxDelay = time.Second, 100 * time.Millisecond, 30 * time.Second

	maxResumes = 5
)

var (
	errLarge = fmt.Errorf("it sent a message of more than %d bytes", MaxRemote)
	errCut   = errors.New("the stream ended before the answer, and could not be resumed")
)

// cursor is where a stream is: its last event, and the delay that the server asked for.
type cursor struct {
	last  string
	delay time.Duration
}

func (c *cursor) take(e *wire.Event) {
	if e.ID != "" && len(e.ID) <= 1<<10 && egress.CheckField(lastHeader, e.ID) == nil {
		c.last = e.ID
	}
	if ms, err := strconv.ParseUint(e.Retry, 10, 32); err == nil {
		c.delay = max(minDelay, time.Duration(ms)*time.Millisecond) //nolint:gosec // 32 bits
	}
}

// pause waits before an attempt.
func (c *cursor) pause(ctx context.Context, attempt int) error {
	delay := firstDelay
	if c.delay > 0 {
		delay = c.delay
	}
	select {
	case <-time.After(min(maxDelay, delay<<min(attempt-1, 5))):
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// listen opens the stream of messages that answer nothing, which a server need not have.
func (r *Remote) listen(ctx context.Context) {
	ctx, cancel := context.WithCancel(ctx)
	r.mu.Lock()
	if r.listening != nil {
		r.listening()
	}
	r.listening = cancel
	r.mu.Unlock()
	r.all.Go(func() {
		defer cancel()
		resp, err := r.open(ctx, "") //nolint:bodyclose // follow does
		if err == nil {
			err = r.follow(ctx, resp, nil)
		}
		r.cfg.Logger.DebugContext(ctx, "no stream of messages", "server", r.origin(), "error", err)
	})
}

// open opens or resumes a stream. It returns no response where another attempt may have one.
func (r *Remote) open(ctx context.Context, last string) (*http.Response, error) {
	header := http.Header{}
	if last != "" {
		header.Set(lastHeader, last)
	}
	resp, err := r.do(ctx, http.MethodGet, nil, header)
	if err != nil {
		return nil, ctx.Err()
	}
	switch code := resp.StatusCode; {
	case code == http.StatusOK && mediaType(resp) == "text/event-stream":
		return resp, nil
	case code >= http.StatusInternalServerError || code == http.StatusTooManyRequests:
		err = nil
	case code == http.StatusOK:
		err = errors.New("what it opened is no stream of events")
	default:
		err = r.refused(ctx, resp, nil)
	}
	_ = resp.Body.Close()
	return nil, err
}

// follow passes on the messages of a stream, and resumes it where it breaks: that of an exchange until its requests are answered, the other
// one until the context ends.
func (r *Remote) follow(ctx context.Context, resp *http.Response, x *exchange) error {
	at := cursor{}
	for attempt := 1; ; attempt++ {
		if resp != nil {
			began := time.Now()
			more, err := r.pass(ctx, resp, &at)
			if err != nil || r.answered(x) || ctx.Err() != nil {
				return err
			}
			if more || time.Since(began) > time.Minute {
				attempt = 1
			}
		}
		if x != nil && (at.last == "" || attempt > maxResumes) {
			return errCut
		}
		if err := at.pause(ctx, attempt); err != nil {
			return err
		}
		var err error
		if resp, err = r.open(ctx, at.last); err != nil { //nolint:bodyclose // pass does
			return err
		}
	}
}

// answered reports whether no request of an exchange waits any more.
func (r *Remote) answered(x *exchange) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return x != nil && len(x.ids) == 0
}

// pass passes on the messages of a stream until it ends. It reports whether there were any, or the stream advanced.
func (r *Remote) pass(ctx context.Context, resp *http.Response, at *cursor) (more bool, err error) {
	defer resp.Body.Close()
	var events wire.Splitter
	buf := make([]byte, 32<<10)
	for held := 0; ; {
		n, ended := resp.Body.Read(buf)
		_, _ = events.Write(buf[:n])
		held += n
		for e, ok := events.Next(); ok; e, ok = events.Next() {
			held -= len(e.Raw)
			before := at.last
			at.take(&e)
			message := len(e.Data) > 0 && (e.Name == "" || e.Name == "message")
			more = more || message || at.last != before
			if message {
				r.deliver(ctx, e.Data)
			}
		}
		if held > MaxRemote-len(buf) {
			return more, errLarge
		}
		if ended != nil {
			return more, nil // it is resumed where it can be
		}
	}
}
