package mcp

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// writeTimeout is how long a child may leave a message unread before the session breaks.
const writeTimeout = 30 * time.Second

// stream is a session over the standard input and output of a child, a message a line. It is a transport and its
// connection. Unlike the SDK's own it ignores lines that are no messages, which some servers print, takes no batches,
// bounds what the server sends unasked, and does not wait for ever for a child that does not read.
type stream struct {
	child *child
	in    *bufio.Reader
	meter meter
	// waiting counts our requests without an answer, asked those of the server.
	waiting, asked atomic.Int64
	write          sync.Mutex
}

var _ sdk.Connection = (*stream)(nil)

// Connect implements [sdk.Transport].
func (s *stream) Connect(context.Context) (sdk.Connection, error) { return s, nil }

// SessionID implements [sdk.Connection].
func (s *stream) SessionID() string { return "" }

// Read implements [sdk.Connection]. It returns when the child has ended.
func (s *stream) Read(context.Context) (jsonrpc.Message, error) {
	for {
		line, err := s.line()
		if err != nil {
			return nil, err
		}
		msg, err := jsonrpc.DecodeMessage(bytes.TrimSpace(line))
		if err != nil {
			msg = nil // it is no message
		}
		if wanted, err := s.admit(msg, len(line)); err != nil || wanted {
			return msg, err
		}
	}
}

// line reads a line, of bounded length.
func (s *stream) line() ([]byte, error) {
	var line []byte
	for {
		part, err := s.in.ReadSlice('\n')
		line = append(line, part...)
		switch {
		case len(line) > maxMessage:
			return nil, fmt.Errorf("it sent a message of more than %d bytes", maxMessage)
		case err == nil:
			return line, nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		}
	}
}

// admit reports whether a message concerns the session, or returns that there are too many.
func (s *stream) admit(msg jsonrpc.Message, size int) (bool, error) {
	if _, ok := msg.(*jsonrpc.Response); ok {
		if s.waiting.Add(-1) >= 0 {
			return true, nil
		}
		s.waiting.Add(1)
	}
	if err := s.meter.spend(messagePrice + size); err != nil {
		return false, err
	}
	r, ok := msg.(*jsonrpc.Request)
	if !ok {
		return false, nil
	}
	if r.IsCall() {
		if s.asked.Add(1) > maxRequests {
			return false, errFlood
		}
		return true, nil
	}
	switch r.Method {
	case "notifications/tools/list_changed", "notifications/progress", "notifications/cancelled", "notifications/subscriptions/acknowledged":
		return true, nil
	}
	return false, nil
}

// Write implements [sdk.Connection].
func (s *stream) Write(_ context.Context, msg jsonrpc.Message) error {
	data, err := jsonrpc.EncodeMessage(msg)
	if err != nil {
		return err
	}
	if r, ok := msg.(*jsonrpc.Request); ok && r.IsCall() {
		s.waiting.Add(1)
	}
	s.write.Lock()
	defer s.write.Unlock()
	_ = s.child.stdin.SetWriteDeadline(time.Now().Add(writeTimeout)) // not on every system
	if _, err := s.child.stdin.Write(append(data, '\n')); err != nil {
		go s.child.stop() // half a message may have been written
		return fmt.Errorf("it does not read its input: %w", err)
	}
	if _, answer := msg.(*jsonrpc.Response); answer {
		s.asked.Add(-1)
	}
	return nil
}

// Close implements [sdk.Connection]. The child ends in the background, and then Read returns.
func (s *stream) Close() error {
	go s.child.stop()
	return nil
}

// logLines logs what a child writes to its standard error, as far as it is not too much.
func (s *server) logLines(ctx context.Context, r io.Reader) {
	in := bufio.NewReaderSize(r, maxLogLine)
	var m meter
	for {
		line, cut, err := in.ReadLine()
		if err != nil {
			return
		}
		if m.spend(logPrice) == nil && len(line) > 0 {
			s.log.DebugContext(ctx, "mcp server stderr", "line", s.redact.Replace(string(line)), "cut", cut)
		}
		for cut && err == nil { // the rest of a long line
			_, cut, err = in.ReadLine()
		}
	}
}

// maxLogLine is how long a logged line may be; logPrice allows a hundred of them a second.
const (
	maxLogLine = 2 << 10
	logPrice   = maxUnasked / 100
)
