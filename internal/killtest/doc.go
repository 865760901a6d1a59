// Package killtest kills processes at random, so that a test can say what they leave. The processes are
// the test binary itself: its TestMain calls [Child].
//
// # Concurrency
//
// [Run] has [AtOnce] children at a time, and calls check from as many goroutines.
//
// # Errors
//
// What goes wrong is an error of the test; a child says it on its standard error, and ends.
package killtest
