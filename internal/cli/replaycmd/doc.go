// Package replaycmd replays a recording for mortise run: model, user and tools say what they said then, while
// plugins and policies work as they would live. It ends with a [Report].
//
// # Concurrency
//
// [Run] runs once in a process; the report is gathered from several goroutines.
//
// # Errors
//
// A run that failed does not keep the next one from starting; all failures are joined.
package replaycmd
