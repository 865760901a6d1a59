// Package mcpproxy stands between an MCP client and a server on standard streams, and lets plugins gate, rewrite and
// replace tool calls. Every message in which no plugin has a part passes byte for byte, in its order; what is changed is
// spliced into the message, so that unknown fields survive.
//
// # Concurrency
//
// [Proxy.Run] copies both ways at once. A call that plugins look at does not hold up other messages.
//
// # Errors
//
// [Proxy.Run] returns when either side ends. A call that is denied is a normal result with isError.
package mcpproxy
