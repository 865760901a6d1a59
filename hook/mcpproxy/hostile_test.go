package mcpproxy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestRemote_hostile: whatever a server does to a call, the call gets an error that names the server and no secret, and the next message passes.
func TestRemote_hostile(t *testing.T) {
	t.Parallel()
	var stolen atomic.Int64
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	t.Cleanup(thief.Close)
	piece := strings.Repeat("x", 1<<20)
	endless := func(kind, first, more string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, err := io.WriteString(w, first)
			for err == nil && r.Context().Err() == nil {
				_, err = io.WriteString(w, more)
			}
		}
	}
	status := func(code int) http.HandlerFunc {
		return func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			_, _ = io.WriteString(w, "secret words")
		}
	}
	redirect := func(code int, to string) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, to, code) }
	}
	for name, tc := range map[string]struct {
		answer http.HandlerFunc
		want   string
	}{
		"endless line":  {endless("text/event-stream", "data: ", piece), "more than 16777216 bytes"},
		"endless event": {endless("text/event-stream", "", "data: x\n"+strings.Repeat("data:\n", 1<<16)), "more than 16777216 bytes"},
		"huge JSON":     {endless("application/json", `{"x":"`, piece), "more than 16777216 bytes"},
		"huge error": {func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusBadRequest)
			endless("application/json", `{"x":"`, piece)(w, r)
		}, "it answered 400"},
		"other origin": {redirect(http.StatusTemporaryRedirect, thief.URL), "another origin"},
		"other method": {redirect(http.StatusSeeOther, "/secret"), "redirects a POST to a GET"},
		"redirects":    {redirect(http.StatusTemporaryRedirect, "/secret"), "another origin"},
		"web page": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "text/html")
			_, _ = io.WriteString(w, "secret")
		}, "and neither JSON nor a stream of events"},
		"no JSON":      {func(w http.ResponseWriter, _ *http.Request) { reply(w, "secret") }, "its answer is no message"},
		"accepted":     {status(http.StatusAccepted), "it gave no answer"},
		"unauthorized": {status(http.StatusUnauthorized), "401 Unauthorized; the credentials are missing or wrong"},
		"forbidden":    {status(http.StatusForbidden), "403 Forbidden; the credentials are missing or wrong"},
		"broken":       {status(http.StatusInternalServerError), "500 Internal Server Error"},
		"other id":     {func(w http.ResponseWriter, _ *http.Request) { reply(w, `{"jsonrpc":"2.0","id":77,"result":{}}`) }, "it gave no answer"},
		"event for another": {func(w http.ResponseWriter, _ *http.Request) {
			events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":77,\"result\":{}}\n\n")
		}, "the stream ended before the answer"},
		"cut event": {func(w http.ResponseWriter, _ *http.Request) {
			events(w, "data: {\"jsonrpc\":\"2.0\",\"id\":5,\"result\":{}}\n")
		}, "the stream ended before the answer"},
		"hung up": {func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := http.NewResponseController(w).Hijack()
			if err == nil {
				_ = conn.Close()
			}
		}, "EOF"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, _ := connect(t, script(map[string]http.HandlerFunc{"tools/call": tc.answer}), nil, redact())
			s.write(s.toProxy, hello)
			s.expect(s.client, welcome)
			s.write(s.toProxy, callLine("5", "x"))
			s.failed("5", tc.want)
			s.write(s.toProxy, ping(6))
			s.expect(s.client, pong(6))
		})
	}
	t.Cleanup(func() {
		if n := stolen.Load(); n > 0 {
			t.Errorf("another origin got %d requests", n)
		}
	})
}

// TestRemote_unreachable: a server that is not there is an error for each request, until it is there.
func TestRemote_unreachable(t *testing.T) {
	t.Parallel()
	s := connectTo(t, "http://127.0.0.1:1/secret", nil)
	s.write(s.toProxy, hello, initialized)
	s.failed("0", "connection refused")
	s.write(s.toProxy, ping(1))
	s.failed("1", "connection refused")
}

// TestRemote_errors: an error of JSON-RPC with a status is passed on as it is, if it is for the request that waits.
func TestRemote_errors(t *testing.T) {
	t.Parallel()
	const own, others = `{"jsonrpc":"2.0", "id":5,"error":{"code":-32601,"message":"no such method"}}`, `{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"secret"}}`
	body := own
	s, _ := connect(t, script(map[string]http.HandlerFunc{"tools/call": func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json; charset=utf-8")
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, body)
	}}), nil)
	s.write(s.toProxy, callLine("5", "x"))
	s.expect(s.client, own)
	body = others
	s.write(s.toProxy, callLine("5", "x"))
	s.failed("5", "404 Not Found")
}

// TestRemote_lost: the request that waits gets an error when the server has ended the session, and no further message is sent for it; when the
// client initializes again there is a new one.
func TestRemote_lost(t *testing.T) {
	t.Parallel()
	s, r := connect(t, script(map[string]http.HandlerFunc{"tools/call": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusNotFound) }}), nil)
	s.write(s.toProxy, hello)
	s.expect(s.client, welcome)
	s.write(s.toProxy, callLine("1", "x"))
	s.failed("1", "it ended the session; connect to the server again")
	s.write(s.toProxy, ping(2))
	s.failed("2", "it ended the session")
	if n := len(r.all(http.MethodPost)); n != 2 {
		t.Errorf("the server got %d messages: %q", n, r.bodies())
	}
	s.write(s.toProxy, hello)
	s.expect(s.client, welcome)
	if h := r.all(http.MethodPost)[2].header; h.Get("Mcp-Session-Id") != "" || h.Get("Mcp-Protocol-Version") != "" {
		t.Errorf("initialize has headers of the old session: %v", h)
	}
	s.write(s.toProxy, ping(3))
	s.expect(s.client, pong(3))
}

// TestRemote_injection: what a server names as session, version or event never becomes another header.
func TestRemote_injection(t *testing.T) {
	t.Parallel()
	for name, id := range map[string]string{"space": "a b", "tab": "a\tb", "no ASCII": "sessi\xc3\xb3n", "long": strings.Repeat("x", 2000)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := connect(t, script(map[string]http.HandlerFunc{"initialize": func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Mcp-Session-Id", id)
				reply(w, welcome)
			}}), nil)
			s.write(s.toProxy, hello)
			s.failed("0", "its session id cannot be sent in a header")
			s.write(s.toProxy, ping(1))
			s.expect(s.client, pong(1))
			if h := r.all(http.MethodPost)[1].header; h.Get("Mcp-Session-Id") != "" {
				t.Errorf("%v", h)
			}
		})
	}
	t.Run("version", func(t *testing.T) {
		t.Parallel()
		s, r := connect(t, script(map[string]http.HandlerFunc{"initialize": func(w http.ResponseWriter, _ *http.Request) {
			reply(w, strings.Replace(welcome, "2025-06-18", `2025\r\nX-Evil: 1`, 1))
		}}), nil)
		s.write(s.toProxy, hello)
		s.line()
		s.write(s.toProxy, ping(1))
		s.expect(s.client, pong(1))
		if h := r.all(http.MethodPost)[1].header; h.Get("Mcp-Protocol-Version") != "" || h.Get("X-Evil") != "" {
			t.Errorf("%v", h)
		}
	})
}

// TestRemote_resumed: a stream that breaks is continued behind its last event, after the delay that the server asks for.
func TestRemote_resumed(t *testing.T) {
	t.Parallel()
	progress := `{"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":7,"progress":%d}}`
	var opened atomic.Int64
	s, r := connect(t, script(map[string]http.HandlerFunc{
		"tools/call": func(w http.ResponseWriter, _ *http.Request) {
			events(w, "id: e1\nretry: 1\ndata:\n\n", "id: e2\ndata: "+fmt.Sprintf(progress, 1)+"\n\n", "id: e3\ndata: "+fmt.Sprintf(progress, 2)+"\n")
		},
		http.MethodGet: func(w http.ResponseWriter, r *http.Request) {
			switch opened.Add(1) {
			case 1:
				w.WriteHeader(http.StatusServiceUnavailable)
			case 2:
				events(w, "id: e3\ndata: "+fmt.Sprintf(progress, 2)+"\n\n")
			default:
				events(w, "id: e4\ndata: "+pong(5)+"\n\n")
			}
		},
	}), nil)
	s.write(s.toProxy, callLine("5", "x"))
	s.expect(s.client, fmt.Sprintf(progress, 1))
	s.expect(s.client, fmt.Sprintf(progress, 2))
	s.expect(s.client, pong(5))
	var last []string
	for _, p := range r.all(http.MethodGet) {
		last = append(last, p.header.Get("Last-Event-Id"))
	}
	if fmt.Sprint(last) != "[e2 e2 e3]" {
		t.Errorf("it was resumed after %v", last)
	}
}

// TestRemote_givenUp: a stream that brings nothing more is given up, and one that the server does not resume at once.
func TestRemote_givenUp(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		code, gets int
		want       string
	}{"nothing": {http.StatusServiceUnavailable, 5, "could not be resumed"}, "refused": {http.StatusBadRequest, 1, "it answered 400"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, r := connect(t, script(map[string]http.HandlerFunc{
				"tools/call":   func(w http.ResponseWriter, _ *http.Request) { events(w, "id: e1\nretry: 1\ndata:\n\n") },
				http.MethodGet: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(tc.code) },
			}), nil)
			s.write(s.toProxy, callLine("5", "x"))
			s.failed("5", tc.want)
			if n := len(r.all(http.MethodGet)); n != tc.gets {
				t.Errorf("it was resumed %d times", n)
			}
		})
	}
}

// TestRemote_stream: messages that answer nothing reach the client from a stream of their own, which is opened again when it ends.
func TestRemote_stream(t *testing.T) {
	t.Parallel()
	const changed = `{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}`
	s, r := connect(t, script(map[string]http.HandlerFunc{http.MethodGet: func(w http.ResponseWriter, _ *http.Request) {
		events(w, "id: e1\nretry: 1\ndata: "+changed+"\n\n")
	}}), nil)
	s.write(s.toProxy, hello)
	s.expect(s.client, welcome)
	s.write(s.toProxy, initialized)
	s.expect(s.client, changed)
	s.expect(s.client, changed)
	all := r.all(http.MethodGet)
	if all[0].header.Get("Last-Event-Id") != "" || all[1].header.Get("Last-Event-Id") != "e1" {
		t.Errorf("%v %v", all[0].header, all[1].header)
	}
}

// TestRemote_cancel: a held call that is cancelled never reaches the server, one that the server has is cancelled there, and no answer is
// invented for either. Other messages pass meanwhile.
func TestRemote_cancel(t *testing.T) {
	t.Parallel()
	keeps, release := holding()
	defer release()
	s, r := connect(t, script(map[string]http.HandlerFunc{"tools/call": func(w http.ResponseWriter, r *http.Request) {
		events(w, ": open\n\n")
		<-r.Context().Done()
	}}), nil, keeps)
	cancel := `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`
	s.write(s.toProxy, callLine("1", "held"), fmt.Sprintf(cancel, 1), ping(2))
	s.expect(s.client, pong(2))
	release()
	s.write(s.toProxy, callLine("3", "fine"), ping(4))
	s.expect(s.client, pong(4))
	soon(t, "the call did not arrive", func() bool { return strings.Contains(strings.Join(r.bodies(), "\n"), callLine("3", "fine")) })
	s.write(s.toProxy, fmt.Sprintf(cancel, 3), ping(5))
	s.expect(s.client, pong(5))
	begin := time.Now()
	s.end(s.toProxy) // the stream of the cancelled call holds nothing up
	if took := time.Since(begin); took > 4900*time.Millisecond {
		t.Errorf("the end took %s", took)
	}
	all := strings.Join(r.bodies(), "\n")
	if strings.Contains(all, `"held"`) || strings.Contains(all, fmt.Sprintf(cancel, 1)) || !strings.Contains(all, fmt.Sprintf(cancel, 3)) {
		t.Errorf("the server got %s", all)
	}
}

// TestRemote_crowd: more requests than may wait are refused one by one, and cancelled ones make room.
func TestRemote_crowd(t *testing.T) {
	t.Parallel()
	s, r := connect(t, script(map[string]http.HandlerFunc{"tools/call": func(w http.ResponseWriter, r *http.Request) {
		events(w, ": open\n\n")
		<-r.Context().Done()
	}}), nil)
	for i := range 64 {
		s.write(s.toProxy, callLine(fmt.Sprint(i), "x"))
	}
	s.write(s.toProxy, callLine("64", "x"))
	s.failed("64", "more than 64 requests wait")
	for i := range 64 {
		s.write(s.toProxy, fmt.Sprintf(`{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}`, i))
	}
	soon(t, "the server did not get them all", func() bool { return len(r.all(http.MethodPost)) == 128 })
	for i := 100; ; i++ {
		s.write(s.toProxy, ping(i))
		if s.line() == pong(i) {
			break
		}
		<-time.After(50 * time.Millisecond)
	}
}

// TestRemote_ends: calls that the client sent before it closed its side get their answers; one that hangs ends with the program.
func TestRemote_ends(t *testing.T) {
	t.Parallel()
	s, _ := connect(t, script(map[string]http.HandlerFunc{
		`"late"`: func(w http.ResponseWriter, r *http.Request) {
			<-time.After(300 * time.Millisecond)
			reply(w, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"hunter2"}]}}`)
		},
		`"never"`: func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
	}), nil, guard(), redact())
	s.write(s.toProxy, callLine("1", "late"), callLine("2", "never"))
	begin := time.Now()
	_ = s.toProxy.Close()
	s.expect(s.client, `{"jsonrpc":"2.0","id":1,"result":{"content":[{"text":"[redacted]","type":"text"}]}}`)
	go func() { _, _ = io.Copy(io.Discard, s.fromProxy) }() // the client continues to read: the error of the other call may come
	s.end(s.toProxy)
	if took := time.Since(begin); took > 9*time.Second {
		t.Errorf("the end took %s", took)
	}
}

// TestRemote_smuggling: no form of an answer over HTTP gets past the plugins that look at results, or a tool past its pin.
func TestRemote_smuggling(t *testing.T) {
	t.Parallel()
	const secret = `{"content":[{"type":"text","text":"hunter2"}]}`
	for name, answer := range map[string]string{
		"twice":         `{"jsonrpc":"2.0","id":5,"result":{},"result":` + secret + `}`,
		"within":        `{"jsonrpc":"2.0","id":5,"result":{"content":[],"content":[{"type":"text","text":"hunter2"}]}}`,
		"both":          `{"jsonrpc":"2.0","id":5,"result":{},"error":{"code":1,"message":"hunter2"}}`,
		"part first":    `{"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"hunter2","text":"x"}]}}`,
		"part":          `{"jsonrpc":"2.0","id":5,"result":{"content":[{"type":"text","text":"x","text":"hunter2"}]}}`,
		"other id":      `{"jsonrpc":"2.0","id":77,"result":` + secret + `}`,
		"two values":    `{"jsonrpc":"2.0","method":"x"} {"jsonrpc":"2.0","id":5,"result":` + secret + `}`,
		"list":          `[{"jsonrpc":"2.0","id":5,"result":` + secret + `}]`,
		"line break":    "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":\n{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":" + secret + "}\n}",
		"carriage":      "{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":\r{\"jsonrpc\":\"2.0\",\"id\":5,\"result\":" + secret + "}\r}",
		"spelled":       `{"jsonrpc":"2.0","\u0069d":5.0,"result":` + secret + `}`,
		"another value": `{"jsonrpc":"2.0","id":5,"result":{"n":NaN,"content":[{"type":"text","text":"hunter2"}]}}`,
	} {
		for _, kind := range []string{"json", "events", "stream"} {
			t.Run(name+" "+kind, func(t *testing.T) {
				t.Parallel()
				answers := map[string]http.HandlerFunc{}
				send := func(w http.ResponseWriter, _ *http.Request) {
					events(w, "data: "+strings.ReplaceAll(strings.ReplaceAll(answer, "\r", "\n"), "\n", "\ndata: ")+"\n\n")
				}
				switch kind {
				case "json":
					answers["tools/call"] = func(w http.ResponseWriter, _ *http.Request) { reply(w, answer) }
				case "events":
					answers["tools/call"] = send
				default:
					answers[http.MethodGet] = send
				}
				s, _ := connect(t, script(answers), nil, redact())
				s.write(s.toProxy, hello)
				s.expect(s.client, welcome)
				s.write(s.toProxy, callLine("5", "x"), initialized)
				for id := 6; id < 9; id++ {
					s.write(s.toProxy, ping(id))
					for line := ""; line != pong(id); {
						line = s.line()
						var m struct {
							Result json.RawMessage `json:"result"`
							Error  json.RawMessage `json:"error"`
						}
						if err := json.Unmarshal([]byte(line), &m); err != nil || bytes.Contains(slices.Concat(m.Result, m.Error), []byte("hunter2")) {
							t.Errorf("%v, the client got %s", err, line)
						}
					}
				}
			})
		}
	}
}
