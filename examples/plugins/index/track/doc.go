// Package track finds what a tool call and its result touched: files, commands,
// identifiers, URLs, error lines; and keeps bounded tables of them.
//
// # Concurrency
//
// The functions are pure; a [Table] belongs to one caller.
//
// # Errors
//
// There are none. What is not understood is not tracked.
package track
