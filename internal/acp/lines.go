package acp

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"sync"

	sdk "github.com/coder/acp-go-sdk"
)

// maxLine is the size of a message, in bytes. The SDK ends the connection at one above 10 MiB.
const maxLine = 8 << 20

// output writes whole messages, a line each. It is safe for concurrent use.
type output struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(p) //nolint:wrapcheck // it is the writer's
}

// lines passes on the lines of an input that are messages of JSON-RPC, and answers the others with an error: the SDK leaves them
// without an answer, and logs them.
type lines struct {
	in    *bufio.Reader
	out   *output
	ready <-chan struct{} // closed when messages may come
	left  []byte
}

func (l *lines) Read(p []byte) (int, error) {
	<-l.ready
	for len(l.left) == 0 {
		line, err := l.next()
		if refusal := check(line); refusal == nil {
			l.left = line
		} else if err := l.refuse(refusal); err != nil {
			return 0, err
		}
		if err != nil && len(l.left) == 0 {
			return 0, err
		}
	}
	n := copy(p, l.left)
	l.left = l.left[n:]
	return n, nil
}

// next reads a line with its end. Of one that is too long it returns more than maxLine bytes.
func (l *lines) next() (line []byte, err error) {
	for {
		part, err := l.in.ReadSlice('\n')
		if len(line) <= maxLine {
			line = append(line, part...)
		}
		if !errors.Is(err, bufio.ErrBufferFull) {
			return line, err //nolint:wrapcheck // the SDK compares it with io.EOF
		}
	}
}

// check returns why a line is no message. A blank one is left to the SDK, which skips it.
func check(line []byte) *sdk.RequestError {
	if len(line) > maxLine {
		return sdk.NewInvalidRequest(map[string]any{"error": fmt.Sprintf("the message is larger than %d bytes", maxLine)})
	}
	if len(bytes.TrimSpace(line)) == 0 {
		return nil
	}
	if !json.Valid(line) {
		return sdk.NewParseError(map[string]any{"error": "the line is not JSON; each message is one line"})
	}
	var m struct {
		ID     json.RawMessage `json:"id"`
		Method *string         `json:"method"`
		Result json.RawMessage `json:"result"`
		Error  json.RawMessage `json:"error"`
	}
	if json.Unmarshal(line, &m) != nil || m.Method == nil && (m.ID == nil || m.Result == nil && m.Error == nil) {
		return sdk.NewInvalidRequest(map[string]any{"error": "the message is neither a request nor a response of JSON-RPC"})
	}
	return nil
}

func (l *lines) refuse(e *sdk.RequestError) error {
	data, err := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": nil, "error": e})
	if err == nil {
		_, err = l.out.Write(append(data, '\n'))
	}
	return err //nolint:wrapcheck // it ends the connection
}
