// Package launch connects agents with a proxy: by the environment and arguments with which one is started, or by its
// settings, which it restores byte for byte.
//
// # Concurrency
//
// Its functions change files of a user; call them one at a time.
//
// # Errors
//
// They name the file. Settings that cannot be read are left as they are.
package launch
