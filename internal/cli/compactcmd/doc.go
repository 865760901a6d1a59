// Package compactcmd has mortise compact: eval measures policies on recordings, show and undo are about the
// compactions of a store's threads.
//
// # Concurrency
//
// A command runs once in a process.
//
// # Errors
//
// Errors have the exit codes that each command's help lists.
package compactcmd
