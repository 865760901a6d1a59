package mcpproxy

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"mime"
	"net/http"
	"net/url"
)

// Headers of the protocol, in their canonical form.
const (
	sessionHeader = "Mcp-Session-Id"
	versionHeader = "Mcp-Protocol-Version"
	methodHeader  = "Mcp-Method"
	nameHeader    = "Mcp-Name"
	lastHeader    = "Last-Event-Id"
)

// A stateless protocol began with this version: each request names its version, and headers repeat what is asked.
const stateless = "2026-07-28"

// errLost answers requests of a session that the server ended. The proxy does not begin another one by itself: what the client and the
// server agreed at initialize, and the client's subscriptions, are gone with the session, and only the client can repeat them. An initialize
// that no client sent would hide that.
var errLost = errors.New("it ended the session; connect to the server again")

// exchange is a POST of messages with what the server answers to it.
type exchange struct {
	// ids are the requests that wait, as they are written, by their keys. Remote.mu guards it when they were sent.
	ids map[string]string
	// cancels are the requests that notifications cancel.
	cancels                 []string
	initialize, initialized bool
	header                  http.Header
	// sent lets the next message be sent, end ends the exchange.
	sent, end context.CancelFunc
}

// add reads what the transport has to know of a message.
func (x *exchange) add(m *message) {
	if m.method == "" {
		return
	}
	if m.id != "" {
		x.ids[m.key] = m.id
	}
	switch m.method {
	case "initialize":
		x.initialize = true
	case "notifications/initialized":
		x.initialized = true
	case "notifications/cancelled":
		if at, ok := m.inner("params", "requestId"); ok {
			x.cancels = append(x.cancels, keyOf(at.of(m.data)))
		}
	}
	meta, _ := m.inner("params", "_meta")
	version := textOf(meta.of(m.data), "io.modelcontextprotocol/protocolVersion")
	if !visible(version) || version < stateless {
		return
	}
	x.header.Set(versionHeader, version)
	x.header.Set(methodHeader, m.method)
	name := map[string]string{"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}[m.method]
	if name != "" {
		x.header.Set(nameHeader, m.text("params", name))
	}
}

// messages are the message of a line, or those of a list.
func messages(line []byte) (out []*message) {
	all, ok := batchOf(line)
	if !ok {
		all = [][]byte{line}
	}
	for _, one := range all {
		if m, err := read(one); err == nil {
			out = append(out, m)
		}
	}
	return out
}

// visible reports whether a value of a server can be sent in a header.
func visible(s string) bool {
	for _, c := range []byte(s) {
		if c < 0x21 || c > 0x7e {
			return false
		}
	}
	return s != "" && len(s) <= 1<<10
}

// do sends a request with the headers of the session. Its error does not hold the URL.
func (r *Remote) do(ctx context.Context, method string, body []byte, header http.Header) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, method, r.cfg.URL.String(), bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, value := range r.cfg.Headers {
		req.Header.Set(name, value)
	}
	req.Header.Set("Accept", "text/event-stream")
	if method == http.MethodPost {
		req.Header.Set("Accept", "application/json, text/event-stream")
		req.Header.Set("Content-Type", "application/json")
	}
	r.mu.Lock()
	if r.session != "" {
		req.Header.Set(sessionHeader, r.session)
	}
	if r.version != "" {
		req.Header.Set(versionHeader, r.version)
	}
	r.mu.Unlock()
	maps.Copy(req.Header, header)
	resp, err := r.client.Do(req)
	if whole, ok := errors.AsType[*url.Error](err); ok {
		return resp, whole.Err
	}
	return resp, err
}

// ask sends requests and passes on what the server sends in return.
func (r *Remote) ask(ctx context.Context, x *exchange, body []byte) error {
	resp, err := r.do(ctx, http.MethodPost, body, x.header)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		return r.refused(ctx, resp, x)
	}
	if session := resp.Header.Get(sessionHeader); x.initialize && session != "" {
		if !visible(session) {
			return errors.New("its session id cannot be sent in a header")
		}
		r.mu.Lock()
		r.session = session
		r.mu.Unlock()
	}
	switch kind := mediaType(resp); {
	case kind == "text/event-stream":
		return r.follow(ctx, resp, x)
	case kind == "application/json":
		data, err := whole(resp.Body)
		if err == nil && !r.deliver(ctx, data) {
			err = errors.New("its answer is no message")
		}
		return err
	case resp.StatusCode == http.StatusOK:
		return fmt.Errorf("its answer is %.80q, and neither JSON nor a stream of events", kind)
	}
	return nil
}

func mediaType(resp *http.Response) string {
	kind, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	return kind
}

// whole reads a body.
func whole(body io.Reader) ([]byte, error) {
	data, err := io.ReadAll(io.LimitReader(body, MaxRemote+1))
	if len(data) > MaxRemote {
		return nil, errLarge
	}
	return data, err
}

// refused is the error of a status. An error of JSON-RPC to a request that waits is passed on as it is.
func (r *Remote) refused(ctx context.Context, resp *http.Response, x *exchange) error {
	session := resp.Request.Header.Get(sessionHeader)
	lost := resp.StatusCode == http.StatusNotFound && session != ""
	if lost {
		r.lose(session)
	}
	if mediaType(resp) == "application/json" {
		data, err := whole(resp.Body)
		if all := messages(data); err == nil && len(all) == 1 && all[0].response() && r.waits(x, all[0].key) && r.deliver(ctx, data) {
			return nil
		}
	}
	text := fmt.Sprintf("it answered %d %s", resp.StatusCode, http.StatusText(resp.StatusCode))
	switch {
	case lost:
		return errLost
	case resp.StatusCode == http.StatusUnauthorized || resp.StatusCode == http.StatusForbidden:
		text += "; the credentials are missing or wrong"
	}
	return errors.New(text)
}

// waits reports whether a request of an exchange is not answered.
func (r *Remote) waits(x *exchange, key string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return x != nil && x.ids[key] != ""
}

// lose forgets a session that the server does not have any more, unless there is another one by now.
func (r *Remote) lose(session string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.session != session {
		return
	}
	r.session, r.lost = "", true
	if r.listening != nil {
		r.listening()
	}
}

// deliver passes on a message of the server, or a list of them, as one line. It reports false for what is none.
func (r *Remote) deliver(ctx context.Context, data []byte) bool {
	data = bytes.TrimRight(data, "\r\n")
	if !json.Valid(data) {
		r.cfg.Logger.WarnContext(ctx, "what the server sent is no message, and was dropped")
		return false
	}
	line := append(bytes.Clone(data), '\n')
	for i, c := range data {
		if c == '\n' || c == '\r' {
			line[i] = ' ' // between values: a string cannot have one
		}
	}
	for _, m := range messages(line) {
		if m.response() {
			r.settle(m.key, m.text("result", "protocolVersion"))
		}
	}
	_, err := r.in.Write(line)
	return err == nil
}

// fail answers the requests of an exchange that still wait.
func (r *Remote) fail(x *exchange, cause error) {
	if cause == nil {
		cause = errors.New("it gave no answer")
	}
	r.mu.Lock()
	left := maps.Clone(x.ids)
	for key := range left {
		if r.waiting[key] == x {
			delete(r.waiting, key)
		}
	}
	r.mu.Unlock()
	for _, id := range left {
		_, _ = r.in.Write(failure(id, fmt.Sprintf("mortise: %s: %.300v", r.origin(), cause)))
	}
}
