// Package killtest kills processes, at random or when they say so, so that a test can check what they leave. The processes are
// the test binary itself: its TestMain calls [Child].
//
// # Concurrency
//
// [Once] and [Start] have one child, [Run] has [AtOnce] at a time, and calls check from as many goroutines.
//
// # Errors
//
// What goes wrong is an error of the test; a child says it on its standard error, and ends.
package killtest
