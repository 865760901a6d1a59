// Package fs grants folders of the host to guests, by WASI.
//
// # Concurrency
//
// A Grant may be used by any number of hosts.
//
// # Errors
//
// What is wrong with a Grant is an error of Load, which names the field. A quota that is used up is EIO for the guest.
package fs
