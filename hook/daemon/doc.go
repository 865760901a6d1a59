// Package daemon keeps an [hook.Engine] warm behind a socket that only its user may open. Clients send one event each
// and get one answer; what cannot be answered in time is answered by the policy file.
//
// # Concurrency
//
// A [Server] is safe for concurrent use. [Server.Serve] returns when its context is done, when the daemon was idle for
// long, or when a client with a newer protocol came; it waits for the events under way.
//
// # Errors
//
// [ErrRunning] means that another daemon serves the profile. An event that fails is answered by the policy and is in the record.
package daemon
