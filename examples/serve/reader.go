package main

import (
	"context"
	"fmt"
	"io"
	"os"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// partSize is how much of a file the tool returns, in bytes.
const partSize = 2000

type place struct {
	Path string `json:"path" jsonschema:"of the file, relative to the folder"`
	Part int    `json:"part" jsonschema:"which 2,000 bytes, from 0"`
}

// serveReader is an MCP server on standard input and output, with a tool that reads the files of a folder.
func serveReader(folder string) int {
	root, err := os.OpenRoot(folder)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	s := sdk.NewServer(&sdk.Implementation{Name: "files", Version: "1"}, nil)
	sdk.AddTool(s, &sdk.Tool{Name: "read", Description: "Reads a part of a file."},
		func(_ context.Context, _ *sdk.CallToolRequest, in place) (*sdk.CallToolResult, any, error) {
			text, err := readPart(root, in)
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil, err
		})
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		return 1
	}
	return 0
}

func readPart(root *os.Root, in place) (string, error) {
	f, err := root.Open(in.Path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	text, err := io.ReadAll(io.NewSectionReader(f, int64(in.Part)*partSize, partSize))
	return fmt.Sprintf("%s, part %d:\n%s", in.Path, in.Part, text), err
}
