// Package install registers the client of hooks in the settings of agents, and takes it out again. Edits splice bytes:
// order, indentation, comments and keys that are not known survive. A file that an agent would reject is refused with
// its line; a backup is kept, and at any moment the old or the new file is there.
//
// # Concurrency
//
// A file is edited under a lock next to it, so processes may install at once.
//
// # Errors
//
// [SyntaxError] names the line of a file that is not what the agent takes.
package install
