// Package servecmd has mortise serve, acp and status: agents for clients over HTTP, for an editor, and what
// a running server does.
//
// # Concurrency
//
// A command runs once in a process, and waits for what it started.
//
// # Errors
//
// Errors have the exit codes that each command's help lists.
package servecmd
