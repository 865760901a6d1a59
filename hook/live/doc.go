// Package live runs an installed agent against a model on loopback with hooks of its own, to prove what reaches the
// agent's model and what is executed: for mortise hook doctor --live, and for tests. Nothing of the user's settings is
// read or changed: the agent gets a home of its own.
//
// # Concurrency
//
// A [Rig] is for one goroutine; its plugins and its model are called concurrently.
//
// # Errors
//
// [New] fails where the rig cannot be built, [Rig.Run] where the agent cannot be started. An agent that fails is a [Result].
package live
