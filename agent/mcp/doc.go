// Package mcp makes servers of the Model Context Protocol an agent's tools. [Open] starts them, as child processes that
// speak over their standard input and output, or connects to them over streamable HTTP. [Servers] is an agent.Tools.
//
// # Tools
//
// A tool is called mcp__server__tool. A name that providers would not accept is made to fit, and ends in a hash of the
// original. Descriptions and schemas have the bounds of those of plugins: a tool that exceeds them is left out with a
// warning in the log, the others stay. When a server announces that its tools have changed they are listed again, so the
// next step of a run sees the new ones.
//
// # Failures
//
// A server that ends, or whose session breaks, is restarted after a back-off that doubles. Until then its tools stay
// listed, so that the beginning of requests and a provider's cache of it stay the same, and calls answer an error result,
// which the model reads. A call that takes too long, or is cancelled, is reported to the server as cancelled; the server
// keeps running. A server that sends a message of more than 16 MiB, or notifications and requests faster than they can
// be needed, is closed and restarted: the memory that it can take is bounded. [Servers.Health] reports all of it.
//
// # Trust
//
// A server is a program of another author. A child gets the environment that is configured, PATH, HOME, LANG, TMPDIR and
// the like, and nothing else of the host's. HTTP headers are sent to the origin of the configured URL only. The hints of a
// tool (read-only, destructive) are its author's word: override what a policy rests on with ServerConfig.Kinds.
//
// Sampling, elicitation and roots are not offered, and their capabilities are not declared: a server that asks for one of
// them gets the protocol error "method not found". Prompts, resources and log messages of servers are ignored.
//
// No log and no Status has arguments, results, or values of headers and the environment. What a child writes to its
// standard error is logged at debug level, with the configured values struck out.
//
// # Concurrency
//
// [Servers] is safe for concurrent use. Each server has goroutines of its own, which [Servers.Close] ends.
//
// # Errors
//
// [Open] returns what is wrong with the configuration, or why a required server did not start. A call returns an error only
// when its context is done; any other failure is an error result.
package mcp
