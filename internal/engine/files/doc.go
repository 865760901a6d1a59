// Package files shows folders of the host to guests, by WASI.
//
// # Concurrency
//
// A Folder is shared by the instances of a module. What one of them opened belongs to its call.
//
// # Errors
//
// They are those of WASI; a quota that is used up is EIO, as there is none for it.
package files
