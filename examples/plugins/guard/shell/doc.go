// Package shell reads a command line as a POSIX shell would, far enough to know
// which programs it runs: quotes, escapes, lists, pipelines, subshells, command
// and process substitution, here documents, redirections, assignments. It expands
// nothing.
//
// # Concurrency
//
// [Parse] is a pure function.
//
// # Errors
//
// There are none: what is malformed (an open quote) runs to the end of the text.
// [Script.Truncated] reports text beyond the limits.
package shell
