// Package runcmd has mortise run, which decides between a prompt (package livecmd) and a recording
// (package replaycmd).
//
// # Concurrency
//
// A command runs once in a process.
//
// # Errors
//
// Flags of both uses contradict each other, and are refused.
package runcmd
