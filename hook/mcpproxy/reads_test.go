package mcpproxy_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/phases"
)

// library is a server of the official SDK whose resources, prompts and questions for the client's model have a key in them. It counts what is read.
func library(reads *atomic.Int64) *sdk.Server {
	server := sdk.NewServer(&sdk.Implementation{Name: "library", Version: "1"}, nil)
	server.AddResourceTemplate(&sdk.ResourceTemplate{Name: "note", URITemplate: "note:///{name}"}, func(_ context.Context, r *sdk.ReadResourceRequest) (*sdk.ReadResourceResult, error) {
		reads.Add(1)
		if strings.HasSuffix(r.Params.URI, "missing") {
			return nil, errors.New("no note with the key hunter2")
		}
		return &sdk.ReadResourceResult{Contents: []*sdk.ResourceContents{
			{URI: r.Params.URI, MIMEType: "text/plain", Text: "the key is hunter2"}, {URI: r.Params.URI + "/more", Blob: []byte("hunter2 in base64")},
		}}, nil
	})
	server.AddPrompt(&sdk.Prompt{Name: "greet", Arguments: []*sdk.PromptArgument{{Name: "who"}}}, func(_ context.Context, r *sdk.GetPromptRequest) (*sdk.GetPromptResult, error) {
		reads.Add(1)
		return &sdk.GetPromptResult{Description: "with hunter2", Messages: []*sdk.PromptMessage{
			{Role: "user", Content: &sdk.TextContent{Text: "greet " + r.Params.Arguments["who"] + " with hunter2"}},
			{Role: "assistant", Content: &sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "note:///a", Text: "hunter2"}}},
		}}, nil
	})
	sdk.AddTool(server, &sdk.Tool{Name: "ask"}, func(ctx context.Context, r *sdk.CallToolRequest, _ struct{}) (*sdk.CallToolResult, any, error) {
		if r.Params.InputResponses == nil { // a question in the result, or for older clients a request of its own
			return &sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"q": &sdk.CreateMessageParams{ //nolint:staticcheck // servers still use it
				MaxTokens: 1, Messages: []*sdk.SamplingMessage{{Role: "user", Content: &sdk.TextContent{Text: "say hunter2"}}}, //nolint:staticcheck // as above
			}}}, nil, nil
		}
		said, err := json.Marshal(r.Params.InputResponses["q"])
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "the model said: " + string(said)}}}, nil, err
	})
	return server
}

// between connects a client and a server of the official SDK through the proxy.
func between(t *testing.T, version string, server *sdk.Server, plugins ...phases.Plugin) *sdk.ClientSession {
	t.Helper()
	p, log := newProxy(t, nil, plugins...)
	clientIn, toProxy := io.Pipe()
	fromProxy, clientOut := io.Pipe()
	serverOut, fromServer := io.Pipe()
	serverIn, toServer := io.Pipe()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	var all sync.WaitGroup
	all.Go(func() { _ = p.Run(ctx, clientIn, clientOut, serverOut, toServer) })
	all.Go(func() { _ = server.Run(ctx, &sdk.IOTransport{Reader: serverIn, Writer: fromServer}) })
	client := sdk.NewClient(&sdk.Implementation{Name: "c", Version: "1"}, &sdk.ClientOptions{
		CreateMessageHandler: func(_ context.Context, r *sdk.CreateMessageRequest) (*sdk.CreateMessageResult, error) { //nolint:staticcheck // servers still use it
			text, _ := r.Params.Messages[0].Content.(*sdk.TextContent)
			return &sdk.CreateMessageResult{Role: "assistant", Model: "m", Content: &sdk.TextContent{Text: "I was asked to " + text.Text}}, nil //nolint:staticcheck // as above
		},
	})
	session, err := client.Connect(ctx, &sdk.IOTransport{Reader: fromProxy, Writer: toProxy}, &sdk.ClientSessionOptions{ProtocolVersion: version})
	if err != nil {
		t.Fatal(err)
	}
	if said := strings.Contains(log.String(), "images, PDFs and other binary content"); said != (plugins[0].Describe().Name == "broken") {
		t.Errorf("it logs at the start: %s", log)
	}
	t.Cleanup(func() {
		_ = session.Close()
		cancel()
		for _, c := range []io.Closer{toProxy, fromServer, serverIn, fromProxy} {
			_ = c.Close()
		}
		all.Wait()
	})
	return session
}

// readGuard denies what is read by its name, and rewrites one name.
func readGuard() []phases.Plugin {
	return []phases.Plugin{
		plugin("readguard", abi.ModeGate, abi.ToolGate, func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			args, _ := e.Call.Arguments.(map[string]any)
			switch fmt.Sprint(e.Call.Name, " ", args) {
			case "resources/read map[server:srv uri:note:///private]", "prompts/get map[name:secret server:srv]":
				return &abi.Reply{Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "it is private"}}, nil
			}
			return nil, nil
		}),
		plugin("readwriter", abi.ModeTransform, abi.BeforeToolExecute, func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
			args, _ := e.Call.Arguments.(map[string]any)
			switch {
			case args["uri"] == "note:///old":
				args["uri"] = "note:///new"
			case e.Call.Name == "prompts/get" && args["arguments"] == nil:
				args["arguments"] = map[string]any{"who": "{all}"}
			default:
				return nil, nil
			}
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectRewriteCall, Arguments: args}}}, nil
		}),
	}
}

// TestReads_official: what a server of the official SDK gives as resources, prompts and questions for a model passes the plugins as results do,
// errors included, and a gate blocks or rewrites a read.
func TestReads_official(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"2025-06-18", "2026-07-28"} {
		t.Run(version, func(t *testing.T) {
			t.Parallel()
			reads := &atomic.Int64{}
			playReads(t, between(t, version, library(reads), append(readGuard(), redact())...), reads)
		})
	}
}

func playReads(t *testing.T, s *sdk.ClientSession, reads *atomic.Int64) {
	t.Helper()
	ctx := t.Context()
	note, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: "note:///old"})
	if err != nil {
		t.Fatal(err)
	}
	if c := note.Contents; len(c) != 2 || c[0].Text != "the key is [redacted]" || c[0].URI != "note:///new" || c[0].MIMEType != "text/plain" || string(c[1].Blob) != "[redacted] in base64" {
		t.Errorf("%+v %+v", c[0], c)
	}
	prompt, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: "greet"})
	if err != nil {
		t.Fatal(err)
	}
	text, _ := prompt.Messages[0].Content.(*sdk.TextContent)
	inner, _ := prompt.Messages[1].Content.(*sdk.EmbeddedResource)
	if prompt.Description != "with [redacted]" || text.Text != "greet {all} with [redacted]" || inner.Resource.Text != "[redacted]" || prompt.Messages[1].Role != "assistant" {
		t.Errorf("%+v %+v %+v", prompt, text, inner.Resource)
	}
	if _, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: "note:///missing"}); err == nil || !strings.Contains(err.Error(), "no note with the key [redacted]") {
		t.Error(err)
	}
	said, err := s.CallTool(ctx, &sdk.CallToolParams{Name: "ask"})
	if err != nil {
		t.Fatal(err)
	}
	if text, _ := said.Content[0].(*sdk.TextContent); !strings.Contains(text.Text, "I was asked to say [redacted]") {
		t.Errorf("%+v", text)
	}
	before := reads.Load()
	if _, err := s.ReadResource(ctx, &sdk.ReadResourceParams{URI: "note:///private"}); err == nil || !strings.Contains(err.Error(), "mortise: it is private") {
		t.Error(err)
	}
	if _, err := s.GetPrompt(ctx, &sdk.GetPromptParams{Name: "secret"}); err == nil || !strings.Contains(err.Error(), "mortise: it is private") {
		t.Error(err)
	}
	if n := reads.Load() - before; n != 0 {
		t.Errorf("the server got %d reads that were denied", n)
	}
}

// TestReads_closed: what is read is withheld when a plugin fails that fails closed, and the server has an error in place of the model's answer.
func TestReads_closed(t *testing.T) {
	t.Parallel()
	broken := plugin("broken", abi.ModeTransform, abi.AfterToolExecute, func(_ context.Context, e *abi.Event) (*abi.Reply, error) {
		if strings.HasPrefix(e.Call.Name, "mcp__") {
			return nil, nil
		}
		return nil, errors.New("broken")
	})
	broken.d.Hooks[0].OnFailure = abi.FailRun
	s := between(t, "2025-06-18", library(&atomic.Int64{}), broken)
	const withheld = "mortise: the result is withheld, because plugin broken failed"
	if _, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: "note:///a"}); err == nil || !strings.Contains(err.Error(), withheld) {
		t.Error(err)
	}
	if _, err := s.GetPrompt(t.Context(), &sdk.GetPromptParams{Name: "greet"}); err == nil || !strings.Contains(err.Error(), withheld) {
		t.Error(err)
	}
	if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "ask"}); err == nil || !strings.Contains(err.Error(), withheld) {
		t.Error(err)
	}
}

// TestReads_bytes: reads, prompts and questions for a model that no plugin changes pass byte for byte, whatever their form, in their order.
func TestReads_bytes(t *testing.T) {
	t.Parallel()
	s := start(t, nil, append(readGuard(), redact())...)
	for _, tc := range [][2]string{
		{`"method":"resources/read","params":{"_meta":{"x":1.0},"uri":"note:///a","other":[1e2]}`, `{"contents":[{"uri":"a","text":"f\u0069ne"}],"n":1.50}`},
		{`"method":"prompts/get", "params":{"name":"p","arguments":{}}`, `{"messages":[]}`},
		{`"method":"resources/read"`, ""},
	} {
		request := `{"jsonrpc":"2.0","id":"x",` + tc[0] + `}`
		s.write(s.toProxy, request)
		if tc[1] == "" {
			s.expect(s.client, `{"jsonrpc":"2.0","id":"x","error":{"code":-32000,"message":"mortise: the call names no tool, resource or prompt"}}`)
			continue
		}
		s.expect(s.server, request)
		answer := `{"jsonrpc":"2.0", "id":"x","result":` + tc[1] + `}`
		s.write(s.fromSrv, answer)
		s.expect(s.client, answer)
	}
	for _, line := range recorded()["sampling"][1] {
		s.write(s.fromSrv, line)
		s.expect(s.client, line)
	}
}

// TestReads_smuggling: no form of a read, its answer or a question for a model gets past the plugins.
func TestReads_smuggling(t *testing.T) {
	t.Parallel()
	s := start(t, nil, append(readGuard(), redact())...)
	const end = `{"jsonrpc":"2.0","method":"end"}`
	go s.write(s.toProxy,
		`{"jsonrpc":"2.0","method":"resources/read","params":{"uri":"note:///private"}}`,
		`{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"note:///a","URI":"note:///private"}}`,
		`{"jsonrpc":"2.0","id":2,"method":"prompts/get","params":{"name":"a","Name":"secret"}}`,
		`[{"jsonrpc":"2.0","id":3,"method":"resources/read","params":{"uri":"note:///private"}}]`, end,
	)
	s.expect(s.server, end)
	s.expect(s.client, `{"jsonrpc":"2.0","id":3,"error":{"code":-32000,"message":"mortise: it is private"}}`)
	s.write(s.toProxy, `{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"note:///a"}}`)
	s.expect(s.server, `{"jsonrpc":"2.0","id":4,"method":"resources/read","params":{"uri":"note:///a"}}`)
	go s.write(s.fromSrv,
		`[{"jsonrpc":"2.0","id":4,"result":{"contents":[{"uri":"a","text":"x","text":"hunter2"}]}},`+
			`{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hunter2"}}]}}]`,
		`{"jsonrpc":"2.0","method":"sampling/createMessage","params":{"messages":[{"role":"user","content":{"type":"text","text":"hunter2"}}]}}`, ping(6),
	)
	got := map[string]bool{}
	for range 3 {
		got[s.line()] = true
	}
	for _, want := range []string{
		`{"jsonrpc":"2.0","id":4,"error":{"code":-32000,"message":"mortise: the result is withheld, because it has a field twice"}}`,
		`{"jsonrpc":"2.0","id":5,"method":"sampling/createMessage","params":{"messages":[{"content":{"text":"[redacted]","type":"text"},"role":"user"}]}}`, ping(6),
	} {
		if !got[want] {
			t.Errorf("want %s, got %v", want, got)
		}
	}
}
