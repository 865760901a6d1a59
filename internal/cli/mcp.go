package cli

import "github.com/spf13/cobra"

func newMCP(s Streams) *cobra.Command {
	_ = s
	return &cobra.Command{Use: "mcp", Short: "Wrap an MCP server"}
}
