// Package launch connects agents with a proxy: by the environment and arguments with which one is started, or by its
// settings, whose values it edits one by one. Taking them out restores the bytes, or, of settings that were edited since,
// takes out the values that still are as they were written.
//
// # Concurrency
//
// Its functions change files of a user; call them one at a time.
//
// # Errors
//
// They name the file, the keys and the values to write by hand. Settings that do not parse are left as they are.
package launch
