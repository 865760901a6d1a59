package mcp_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"
)

// modeKey makes the test binary a server.
const modeKey = "MORTISE_TEST_MCP_SERVER"

func TestMain(m *testing.M) {
	switch mode := os.Getenv(modeKey); mode {
	case "":
		goleak.VerifyTestMain(m)
	case "tools":
		if err := newServer().Run(context.Background(), &sdk.StdioTransport{}); err != nil && !errors.Is(err, io.EOF) {
			fmt.Fprintln(os.Stderr, err)
		}
	case "once": // starts only if the file is not there yet
		f, err := os.OpenFile(os.Args[1], os.O_CREATE|os.O_EXCL, 0o600)
		if err == nil {
			_ = f.Close()
			os.Exit(4)
		}
		_ = newServer().Run(context.Background(), &sdk.StdioTransport{})
	case "silent":
		_, _ = io.Copy(io.Discard, os.Stdin)
	case "stubborn":
		signal.Ignore(syscall.SIGTERM)
		fmt.Fprintln(os.Stderr, "ready")
		scripted(nil)
	default:
		scripted(strings.Split(mode, "\n"))
	}
}

// scripted answers one line to each request, and then nothing, without reading its input.
func scripted(answers []string) {
	in := bufio.NewScanner(os.Stdin)
	for _, answer := range answers {
		for in.Scan() && !strings.Contains(in.Text(), `"id"`) {
		}
		fmt.Println(answer)
	}
	select {}
}

type none struct{}

type words struct {
	Text string `json:"text"`
}

// gate is closed once.
type gate chan struct{}

func newServer() *sdk.Server {
	s := sdk.NewServer(&sdk.Implementation{Name: "helper", Version: "1"}, nil)
	yes := true
	sdk.AddTool(s, &sdk.Tool{Name: "echo", Description: "Says it again.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in words) (*sdk.CallToolResult, any, error) {
			return text(in.Text), nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "sum", Annotations: &sdk.ToolAnnotations{DestructiveHint: &yes}},
		func(_ context.Context, _ *sdk.CallToolRequest, in struct{ A, B int }) (*sdk.CallToolResult, struct{ Sum int }, error) {
			return nil, struct{ Sum int }{in.A + in.B}, nil
		})
	add := func(name string, do func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
		sdk.AddTool(s, &sdk.Tool{Name: name}, func(ctx context.Context, r *sdk.CallToolRequest, _ none) (*sdk.CallToolResult, any, error) {
			result, err := do(ctx, r)
			return result, nil, err
		})
	}
	addContent(add)
	addTrouble(add)
	add("change", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		s.RemoveTools("old")
		add("new", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("I am new"), nil })
		return text("changed"), nil
	})
	add("old", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return text("I am old"), nil })
	return s
}

type adder func(name string, do func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error))

func text(s string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: s}}}
}

func addContent(add adder) {
	add("media", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: "look"},
			&sdk.ImageContent{MIMEType: "image/png", Data: []byte("png")},
			&sdk.AudioContent{MIMEType: "audio/wav", Data: []byte("wav")},
			&sdk.ResourceLink{URI: "file:///a", Name: "a", MIMEType: "text/plain", Description: "the file a"},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///b", Text: "b's text"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///c", MIMEType: "application/pdf", Blob: []byte("pdf")}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///d", MIMEType: "image/gif", Blob: []byte("gif")}},
		}}, nil
	})
	add("large", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{
			&sdk.TextContent{Text: strings.Repeat("é", 1000)},
			&sdk.TextContent{Text: "more"},
			&sdk.ImageContent{MIMEType: "image/png", Data: make([]byte, 3<<20+1)},
		}}, nil
	})
	add("nothing", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{}, nil
	})
	add("fail", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return nil, errors.New("the disk is full")
	})
	add("env", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return text(strings.Join(os.Environ(), "\n")), nil
	})
}

func addTrouble(add adder) {
	cancelled := make(gate)
	add("hang", func(ctx context.Context, _ *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-ctx.Done()
		close(cancelled)
		return nil, ctx.Err()
	})
	add("hung", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-cancelled
		return text("it was cancelled"), nil
	})
	released := make(gate)
	add("work", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		token := r.Params.GetProgressToken()
		if token == nil {
			return text("nobody listens"), nil
		}
		for i, message := range []string{"half", ""} {
			if err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{ProgressToken: token, Message: message, Progress: float64(i + 1), Total: 2}); err != nil {
				return nil, err
			}
		}
		<-released
		return text("done"), nil
	})
	add("release", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		close(released)
		return text("released"), nil
	})
	add("die", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintf(os.Stderr, "dying with %s\n", os.Getenv("TOKEN"))
		os.Exit(3)
		return nil, nil
	})
	add("leave", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		child := exec.CommandContext(context.WithoutCancel(ctx), "sleep", "600")
		child.Stdout = os.Stdout
		if err := child.Start(); err != nil {
			return nil, err
		}
		return text(fmt.Sprint(child.Process.Pid)), nil
	})
	add("noise", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Print("starting up ...\n{\"level\":\"info\"}\n[1]\n\n")
		return text("sorry"), nil
	})
	add("ask", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_, sampling := r.Session.CreateMessage(ctx, &sdk.CreateMessageParams{MaxTokens: 1, Messages: []*sdk.SamplingMessage{}}) //nolint:staticcheck // servers still use it
		_, roots := r.Session.ListRoots(ctx, nil)                                                                               //nolint:staticcheck // servers still use it
		_, elicitation := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "your password?", RequestedSchema: map[string]any{"type": "object"}})
		return text(fmt.Sprintf("%v\n%v\n%v", sampling, roots, elicitation)), nil
	})
	flood := func(line string) {
		add(strings.Fields(line)[0], func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			_, line, _ := strings.Cut(line, " ")
			for i := 0; ; i++ {
				if _, err := fmt.Print(strings.ReplaceAll(line, "ID", fmt.Sprint(i))); err != nil {
					os.Exit(5)
				}
			}
		})
	}
	flood("line " + strings.Repeat("x", 1<<20))
	flood(`notifications {"jsonrpc":"2.0","method":"notifications/progress","params":{"progressToken":"t","progress":1}}` + "\n")
	flood(`logs {"jsonrpc":"2.0","method":"notifications/message","params":{"level":"info","data":"x"}}` + "\n")
	flood(`changes {"jsonrpc":"2.0","method":"notifications/tools/list_changed"}` + "\n")
	flood(`requests {"jsonrpc":"2.0","id":"pID","method":"ping"}` + "\n")
	flood(`responses {"jsonrpc":"2.0","id":9000000ID,"result":{}}` + "\n")
	flood("garbage garbage\n")
}

func self(tb testing.TB) string {
	tb.Helper()
	path, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	return filepath.Clean(path)
}
