// Package compile has the folder of compiled code and the child processes that compile into it.
//
// # Concurrency
//
// A DiskCache and a Process may be used by any number of goroutines.
//
// # Errors
//
// What the engine refuses comes with its text. A child that ended without the code is ErrCompileChild, a fault of the process ErrEngine.
package compile
