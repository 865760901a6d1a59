// Package program is what a config becomes: stores, models, modules with their grants, MCP servers,
// and, for mortise serve, the server with its telemetry and reloads.
//
//	Links    what the binary has: providers, stores, engines
//	Setup    a config with its open store and models
//	Parts    the plugins and policies that are loaded
//	Program  all of it, running
//
// # Concurrency
//
// A [Program] and the [Parts] that it uses are safe for concurrent use. Who opens one closes it,
// also after an error.
//
// # Errors
//
// Errors have the exit code of package exit: config, or module when a module failed to load.
package program
