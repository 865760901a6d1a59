// Package proxycmd has mortise proxy: it forwards an agent's requests to models, or starts the agent so that it uses the
// proxy, and connects agents for good.
//
// # Concurrency
//
// A command runs once in a process, and waits for what it started.
//
// # Errors
//
// The exit code is that of the agent where one was started.
package proxycmd
