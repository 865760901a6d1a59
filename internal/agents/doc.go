// Package agents finds the real agents that live tests drive. install.sh in its folder installs them from npm; they are
// no part of the repository.
//
// # Concurrency
//
// Its functions may be called concurrently.
//
// # Errors
//
// There are none: an agent that is not there has no path.
package agents
