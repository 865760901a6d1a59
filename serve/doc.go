// Package serve is the HTTP API of a mortise.Runtime: runs and their events as server-sent
// events, threads, decisions, dead letters, plugins and policies. A [Server] makes two handlers,
// [Server.Public] for clients and [Server.Admin] for operators. docs/http.md describes the
// routes, GET /openapi.json too.
//
// # Events
//
// A run has one stream of events, whichever processes execute it and however often it waits.
// The id of an event is "D-N": the number of the dispatch within its thread, and that of the
// event within its dispatch. It is the same in all processes that share the store, so that a
// client continues anywhere with Last-Event-ID. The table wireNames maps the names of events.
//
// # Security
//
// With tokens, each request names one as a bearer token, whose scopes allow it. Without tokens
// only peers on the loopback interface are served, under a loopback name, and web pages of
// other origins are refused.
//
// # Concurrency
//
// A [Server] is safe for concurrent use. Who makes one calls [Server.Drain] or [Server.Close]
// before the Runtime's Close.
//
// # Errors
//
// Responses with an error are RFC 9457 problems, see [Problem]. They name the field, and never
// a type of this program, a path, or a secret.
package serve
