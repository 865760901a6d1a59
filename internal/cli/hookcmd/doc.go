// Package hookcmd has mortise hook and mortise mcp, which put the plugins of a config into other agents: as hooks, and
// between an agent and an MCP server.
//
// # Concurrency
//
// A command runs once in a process; the daemon answers several clients at once.
//
// # Errors
//
// Errors have the exit codes that each command's help lists.
package hookcmd
