// Package bundle holds the modules that are embedded in programs, in one compressed archive: they share Go's runtime.
// Package summarizers/bundled gives out the policies, plugins/bundled the plugins. internal/guestbuild writes the archive.
//
// # Concurrency
//
// [Spec] is safe for concurrent use. Each call unpacks anew, which takes some 60 ms, and keeps nothing.
//
// # Errors
//
// An error means that the program's own binary is damaged, or that there is no such module: the checksum is compared.
package bundle
