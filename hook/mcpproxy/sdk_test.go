package mcpproxy_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/hook/mcpproxy"
)

type word struct {
	Word string  `json:"word"`
	N    float64 `json:"n"`
}

// official is a server of the official SDK: say says a word again with a key, ask asks the client for its roots, and change changes the list of tools.
func official() *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "official", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "say"}, func(ctx context.Context, r *sdk.CallToolRequest, in word) (*sdk.CallToolResult, any, error) {
		if token := r.Params.GetProgressToken(); token != nil {
			_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Progress: 1})
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: in.Word + " hunter2"}}}, map[string]string{"key": "hunter2"}, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		roots, err := r.Session.ListRoots(ctx, nil) //nolint:staticcheck // servers still use it
		if err != nil {
			return nil, nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: fmt.Sprint(len(roots.Roots), " roots")}}}, nil, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "change"}, func(context.Context, *sdk.CallToolRequest, struct{}) (*sdk.CallToolResult, any, error) {
		server.RemoveTools("ask")
		return &sdk.CallToolResult{}, nil, nil
	})
	return server
}

// until reads messages until one has some text, and fails where one has a text that may not be.
func (s *session) until(text string) string {
	s.t.Helper()
	for {
		line := s.line()
		if !json.Valid([]byte(line)) || strings.Contains(line, "hunter2") {
			s.t.Errorf("the client got %s", line)
		}
		if strings.Contains(line, text) {
			return line
		}
	}
}

// TestRemote_official: gate, rewrite, results and pins work with the official server in each of its modes, and messages of the server
// reach the client.
func TestRemote_official(t *testing.T) {
	t.Parallel()
	for _, stateless := range []bool{false, true} {
		for _, jsons := range []bool{false, true} {
			t.Run(fmt.Sprintf("stateless=%v,json=%v", stateless, jsons), func(t *testing.T) {
				t.Parallel()
				server := official()
				handler := sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, &sdk.StreamableHTTPOptions{
					Stateless: stateless, JSONResponse: jsons, EventStore: sdk.NewMemoryEventStore(nil),
				})
				pins, err := mcpproxy.OpenPins(filepath.Join(t.TempDir(), "pins.json"), true, nil)
				if err != nil {
					t.Fatal(err)
				}
				s, r := connect(t, handler, pins, guard(), rewriter(), redact())
				playOfficial(s, r, stateless, jsons)
				s.end(s.toProxy)
				if n := len(r.all(http.MethodDelete)); (n == 1) == stateless {
					t.Errorf("%d times DELETE", n)
				}
			})
		}
	}
}

func playOfficial(s *session, r *recorder, stateless, jsons bool) {
	t := s.t
	t.Helper()
	s.write(s.toProxy, strings.Replace(hello, `"capabilities":{}`, `"capabilities":{"roots":{}}`, 1))
	s.until(`"serverInfo"`)
	s.write(s.toProxy, initialized, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	s.until(`"name":"say"`)
	s.write(s.toProxy, callLine("2", "bad"))
	s.until("bad word")
	s.write(s.toProxy, callLine("3", "before"))
	if !jsons { // whose answer is one message
		s.until(`"progressToken":7`)
	}
	if got := s.until(`"id":3`); !strings.Contains(got, "after [redacted]") || !strings.Contains(got, `"key":"[redacted]"`) {
		t.Error(got)
	}
	if all := strings.Join(r.bodies(), "\n"); strings.Contains(all, `"bad"`) || strings.Contains(all, `"before"`) {
		t.Errorf("the server got %s", all)
	}
	if stateless {
		return
	}
	soon(t, "no stream was opened", func() bool { return len(r.all(http.MethodGet)) > 0 })
	s.write(s.toProxy, `{"jsonrpc":"2.0","id":4,"method":"tools/call","params":{"name":"ask"}}`)
	var request struct {
		ID json.RawMessage `json:"id"`
	}
	if err := json.Unmarshal([]byte(s.until("roots/list")), &request); err != nil {
		t.Fatal(err)
	}
	s.write(s.toProxy, fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"roots":[{"uri":"file:///a"}]}}`, request.ID))
	s.until("1 roots")
	s.write(s.toProxy, `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"change"}}`)
	s.until("notifications/tools/list_changed")
}
