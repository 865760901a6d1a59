package mcpproxy_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/hook/mcpproxy"
	"github.com/mortise-dev/mortise/phases"
)

// post is a request that a server got.
type post struct {
	method, body string
	header       http.Header
}

// recorder keeps what requests a handler gets.
type recorder struct {
	next http.Handler
	mu   sync.Mutex
	got  []post
}

func (r *recorder) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(req.Body)
	if err != nil {
		return
	}
	r.mu.Lock()
	r.got = append(r.got, post{req.Method, string(body), req.Header.Clone()})
	r.mu.Unlock()
	req.Body = io.NopCloser(strings.NewReader(string(body)))
	r.next.ServeHTTP(w, req)
}

// all are the requests of a method.
func (r *recorder) all(method string) []post {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.DeleteFunc(slices.Clone(r.got), func(p post) bool { return p.method != method })
}

// bodies are the messages that the server got.
func (r *recorder) bodies() (out []string) {
	for _, p := range r.all(http.MethodPost) {
		out = append(out, p.body)
	}
	return out
}

// connect is a proxy with a client that the test plays, and a server over HTTP.
func connect(t *testing.T, handler http.Handler, pins *mcpproxy.Pins, plugins ...phases.Plugin) (*session, *recorder) {
	t.Helper()
	r := &recorder{next: handler}
	server := httptest.NewServer(r)
	t.Cleanup(server.Close)
	return connectTo(t, server.URL+"/secret-path?key=secret-query", pins, plugins...), r
}

const token = "Bearer secret-token"

func connectTo(t *testing.T, address string, pins *mcpproxy.Pins, plugins ...phases.Plugin) *session {
	t.Helper()
	p, log := newProxy(t, pins, plugins...)
	u, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	remote, err := mcpproxy.Connect(ctx, mcpproxy.RemoteConfig{URL: u, Headers: map[string]string{"Authorization": token}, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	s := &session{t: t, done: make(chan error, 1), log: log}
	clientIn, toProxy := io.Pipe()
	fromProxy, clientOut := io.Pipe()
	s.toProxy, s.fromProxy, s.client = toProxy, fromProxy, bufio.NewReader(fromProxy)
	go func() { s.done <- p.Run(ctx, clientIn, clientOut, remote, remote) }()
	t.Cleanup(func() {
		cancel()
		_ = toProxy.Close()
		go func() { _, _ = io.Copy(io.Discard, fromProxy) }()
		if err := <-s.done; err != nil {
			t.Error(err)
		}
		_ = remote.Close()
		_ = clientOut.Close()
		if strings.Contains(log.String(), "secret-") {
			t.Errorf("a secret is in the log: %s", log)
		}
	})
	return s
}

// line reads the next message for the client.
func (s *session) line() string {
	s.t.Helper()
	timer := time.AfterFunc(20*time.Second, func() { _ = s.fromProxy.CloseWithError(errors.New("no message came in time")) })
	defer timer.Stop()
	got, err := s.client.ReadString('\n')
	if err != nil {
		s.t.Fatalf("%v, %s", err, s.log)
	}
	return strings.TrimSuffix(got, "\n")
}

// failed expects an error for a request, which names the server without its secrets.
func (s *session) failed(id, words string) {
	s.t.Helper()
	got := s.line()
	if !strings.HasPrefix(got, `{"jsonrpc":"2.0","id":`+id+`,"error":{"code":-32000,"message":"mortise: http://127.0.0.1:`) || !strings.Contains(got, words) || strings.Contains(got, "secret") {
		s.t.Errorf("want an error for %s with %q: %s", id, words, got)
	}
}

const hello = `{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"c","version":"1"}}}`

const welcome = `{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"s","version":"1"}}}`

const initialized = `{"jsonrpc":"2.0","method":"notifications/initialized"}`

func ping(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"method":"ping"}`, id) }

func pong(id int) string { return fmt.Sprintf(`{"jsonrpc":"2.0","id":%d,"result":{}}`, id) }

// script is a server whose answers the test writes, by what the message has in it. It answers pings and initialize by itself.
func script(answers map[string]http.HandlerFunc) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		for key, answer := range answers {
			if r.Method == key || strings.Contains(string(body), key) {
				answer(w, r)
				return
			}
		}
		switch {
		case r.Method != http.MethodPost:
			w.WriteHeader(http.StatusMethodNotAllowed)
		case strings.Contains(string(body), `"initialize"`):
			w.Header().Set("Mcp-Session-Id", "session-1")
			reply(w, welcome)
		case strings.Contains(string(body), `"ping"`):
			reply(w, strings.Replace(string(body), `"method":"ping"`, `"result":{}`, 1))
		default:
			w.WriteHeader(http.StatusAccepted)
		}
	})
}

func reply(w http.ResponseWriter, text string) {
	w.Header().Set("Content-Type", "application/json")
	_, _ = io.WriteString(w, text)
}

func events(w http.ResponseWriter, all ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, e := range all {
		_, _ = io.WriteString(w, e)
	}
	_ = http.NewResponseController(w).Flush()
}

// soon waits until something is so.
func soon(t *testing.T, what string, so func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !so(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal(what)
		}
	}
}

// TestRemote_bytes: where no plugin has a part, messages pass byte for byte in both directions, in their order, as JSON and as events.
func TestRemote_bytes(t *testing.T) {
	t.Parallel()
	up := []string{
		`  {"jsonrpc":"2.0", "id":1,"method":"tools/call","params":{"name":"a","arguments":{"n":1.50,"é":"\u00e9"},"x":null}}`,
		`{"id":"s","jsonrpc":"2.0","method":"x/unknown","params":[1e400]}`,
		`[{"jsonrpc":"2.0","id":"b1","method":"ping"}, {"jsonrpc":"2.0","id":"b2","method":"ping"}]`,
		`{"jsonrpc":"2.0","id":"r","result":{"roots":[] }}`,
	}
	down := []string{
		`{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":0.10000000000000001}}`,
		`{"method":"roots/list","jsonrpc":"2.0","id":"r"}`,
		"{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{ \"content\":[{\"type\":\"text\",\"text\":\"\\u00e9\xff\"}]}}",
		`{"jsonrpc":"2.0" , "id":"s" ,"error":{"code":-32601,"message":"no","data":12345678901234567890}}`,
		`[{"jsonrpc":"2.0","id":"b2","result":{}}, {"jsonrpc":"2.0","id":"b1","result":{}}]`,
	}
	s, r := connect(t, script(map[string]http.HandlerFunc{
		`"name":"a"`: func(w http.ResponseWriter, _ *http.Request) {
			events(w, ": comment\n\n", "id: 1\ndata:\n\n", "event: message\r\ndata: "+down[0]+"\r\n\r\n", "event: other\ndata: {}\n\n", "data:"+down[1]+"\n\n", "data: "+down[2]+"\n\n")
		},
		"unknown": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, strings.Replace(down[3], " , ", "\r\n,\n", 1)+"\r\n")
		},
		`"b1"`: func(w http.ResponseWriter, _ *http.Request) {
			before, after, _ := strings.Cut(down[4], " ")
			events(w, "data: "+before+"\ndata: "+after+"\n\n") // lines are joined by a line break
		},
	}), nil)
	s.write(s.toProxy, hello)
	s.expect(s.client, welcome)
	s.write(s.toProxy, up[0])
	for _, want := range down[:3] {
		s.expect(s.client, want)
	}
	s.write(s.toProxy, "", "not json", up[1])
	s.expect(s.client, strings.Replace(down[3], " , ", "  , ", 1)) // a line break becomes a space
	s.write(s.toProxy, up[2])
	s.expect(s.client, `{"jsonrpc":"2.0","id":"b2","result":{}}`) // a list with answers is taken apart, as that of a child is
	s.expect(s.client, `{"jsonrpc":"2.0","id":"b1","result":{}}`)
	s.write(s.toProxy, up[3], ping(9))
	s.expect(s.client, pong(9))
	if got, want := r.bodies(), slices.Concat([]string{hello}, up, []string{ping(9)}); !slices.Equal(got, want) {
		t.Errorf("the server got\n%s\nnot\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

// TestRemote_headers: each request has the headers of the protocol, and the server's session ends with the client.
func TestRemote_headers(t *testing.T) {
	t.Parallel()
	s, r := connect(t, script(nil), nil)
	s.write(s.toProxy, hello)
	s.expect(s.client, welcome)
	s.write(s.toProxy, initialized, ping(1))
	s.expect(s.client, pong(1))
	soon(t, "no stream was opened", func() bool { return len(r.all(http.MethodGet)) == 1 })
	s.end(s.toProxy)
	for i, p := range slices.Concat(r.all(http.MethodPost), r.all(http.MethodGet), r.all(http.MethodDelete)) {
		session, version, accept := "session-1", "2025-06-18", "text/event-stream"
		if i == 0 {
			session, version = "", ""
		}
		if p.method == http.MethodPost {
			accept = "application/json, text/event-stream"
		}
		if h := p.header; h.Get("Mcp-Session-Id") != session || h.Get("Mcp-Protocol-Version") != version || h.Get("Accept") != accept || h.Get("Authorization") != token ||
			(h.Get("Content-Type") == "application/json") != (p.method == http.MethodPost) {
			t.Errorf("%s %s: %v", p.method, p.body, p.header)
		}
	}
	if n := len(r.all(http.MethodDelete)); n != 1 {
		t.Errorf("%d times DELETE", n)
	}
}

// TestRemote_stateless: a request that names its version by itself has the headers that this version demands.
func TestRemote_stateless(t *testing.T) {
	t.Parallel()
	s, r := connect(t, script(nil), nil)
	const meta = `"_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}`
	s.write(s.toProxy, `{"jsonrpc":"2.0","id":1,"method":"ping","params":{`+meta+`}}`)
	s.line()
	s.write(s.toProxy, `{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"say","arguments":{},`+meta+`}}`)
	s.failed("2", "it gave no answer")
	all := r.all(http.MethodPost)
	if h := all[0].header; h.Get("Mcp-Protocol-Version") != "2026-07-28" || h.Get("Mcp-Method") != "ping" || h.Get("Mcp-Name") != "" {
		t.Error(h)
	}
	if h := all[1].header; h.Get("Mcp-Method") != "tools/call" || h.Get("Mcp-Name") != "say" {
		t.Error(h)
	}
}
