// Package agents finds the real agents that live tests run: Claude Code, Codex and pi. install.sh in its folder installs them from npm
// into bin/npm-agents, in the versions of package-lock.json; they are no part of the repository.
//
// # Concurrency
//
// Its functions may be called concurrently.
//
// # Errors
//
// There are none: a test whose agent is not installed is skipped.
package agents
