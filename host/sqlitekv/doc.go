// Package sqlitekv keeps the key-value spaces of guests in one SQLite file.
//
// The file is opened in WAL mode, with the modes of a private file, and may be used
// by several processes at once. What Set has acknowledged survives a killed
// process; a power cut may lose the last changes, but never leaves half of one.
//
// # Concurrency
//
// A [Store] is safe for concurrent use. The caller that opened it closes it, after the
// modules that use it.
//
// # Errors
//
// A file that belongs to another program, or to a newer version of this package,
// is refused by [Open] and not touched. A quota that is used up is
// [host.ErrQuota]. A context that ends while another process writes gives the
// context's error.
package sqlitekv
