// Package e2e_test runs the command as its users do: mortise serve in a process of its own, with
// real plugins, policies and an MCP server, asked over HTTP. The model is the strict fake of a
// provider.
package e2e_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
)

// Variables that make this test binary another program.
const (
	// commandArgs makes it the command, with these arguments, a line each.
	commandArgs = "MORTISE_E2E_ARGS"
	// toolLog makes it an MCP server with the tools "work" and "check", which append a line to this file.
	toolLog = "MORTISE_E2E_TOOL_LOG"
)

func TestMain(m *testing.M) {
	host.CompileChild()
	if path := os.Getenv(toolLog); path != "" {
		os.Exit(serveTool(path))
	}
	if args := os.Getenv(commandArgs); args != "" {
		streams := cli.Streams{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}
		os.Exit(int(cli.Main(context.Background(), strings.Split(args, "\n"), streams, links.All())))
	}
	goleak.VerifyTestMain(m)
}

type work struct {
	Task string `json:"task"`
}

// serveTool is the MCP server. Each execution is in the log before it is answered.
func serveTool(path string) int {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "works", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "work", Description: "does a task"},
		func(_ context.Context, _ *sdk.CallToolRequest, in work) (*sdk.CallToolResult, any, error) {
			if _, err := fmt.Fprintln(f, in.Task); err != nil {
				return nil, nil, err
			}
			text := "worked on " + in.Task + ", see /srv/app/" + in.Task + ".go. " + strings.Repeat("All lines were read. ", 60)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
	sdk.AddTool(s, &sdk.Tool{Name: "check", Description: "checks a task, which takes a while"},
		func(ctx context.Context, _ *sdk.CallToolRequest, in work) (*sdk.CallToolResult, any, error) {
			if _, err := fmt.Fprintln(f, "check-"+in.Task); err != nil {
				return nil, nil, err
			}
			select {
			case <-time.After(300 * time.Millisecond):
			case <-ctx.Done():
			}
			text := "checked " + in.Task
			if strings.HasPrefix(in.Task, largeTask) {
				text = largeOutput(in.Task)
			}
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, nil
		})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}
