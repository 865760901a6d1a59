package mcp_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent/mcp"
)

type person struct {
	Name string `json:"name"`
}

// A server over HTTP that greets. An agent gets its tools as agent.Config.Tools.
func Example() {
	ctx := context.Background()
	server := sdk.NewServer(&sdk.Implementation{Name: "greeter", Version: "1"}, nil)
	sdk.AddTool(server, &sdk.Tool{Name: "greet", Description: "Greets.", Annotations: &sdk.ToolAnnotations{ReadOnlyHint: true}},
		func(_ context.Context, _ *sdk.CallToolRequest, in person) (*sdk.CallToolResult, any, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "Hello, " + in.Name + "!"}}}, nil, nil
		})
	site := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server }, nil))
	defer site.Close()

	servers, err := mcp.Open(ctx, mcp.Config{Servers: []mcp.ServerConfig{
		{Name: "greeter", URL: site.URL, Headers: map[string]string{"Authorization": "Bearer " + "of the caller"}, Required: true},
	}})
	if err != nil {
		panic(err)
	}
	defer func() { _ = servers.Close(ctx) }()
	for _, tool := range servers.Tools() {
		fmt.Println(tool.Name, tool.Kind)
	}
	result, err := servers.CallTool(ctx, abi.ToolCall{Name: "mcp__greeter__greet", Arguments: map[string]any{"name": "Ada"}})
	fmt.Println(result.Status, result.Content[0].Text, err)
	fmt.Println(servers.Health()[0].State)
	// Output:
	// mcp__greeter__greet read
	// success Hello, Ada! <nil>
	// ready
}
