// Package mcpproxy is between an MCP client on standard streams and a server, and lets plugins gate and rewrite tool calls and
// reads of resources and prompts, and replace their results. The server is a pair of streams: those of a child, or a [Remote], which speaks Streamable HTTP.
// Every message in which no plugin has a part passes byte for byte, in its order; what is changed is spliced into the
// message, so that unknown fields survive.
//
// # Concurrency
//
// [Proxy.Run] copies both ways at once. A call that plugins look at does not hold up other messages. A [Remote] starts goroutines
// for its requests and streams, which end before Close returns.
//
// # Errors
//
// [Proxy.Run] returns when either side ends. A tool call that is denied is a normal result with isError, a read an
// error of JSON-RPC. What
// fails over HTTP is an error of JSON-RPC for the request that waits, and a warning for other messages.
package mcpproxy
