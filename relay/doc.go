// Package relay keeps large texts out of a conversation. In the place of the text
// stands its head, its tail, and a handle with which the rest can be read.
//
// # Files
//
// A [Relay] owns one folder, which only its user may read. Every text is one file
// in it. The folder has a quota: the files that were not used for the longest time
// go first, and so do those older than the age limit. A handle names a file in the
// folder and nothing else: it is checked, and opened without leaving the folder.
//
// # Concurrency
//
// A Relay is safe for concurrent use and starts no goroutine. Close lets go of the
// folder and leaves the files. Two Relays must not share a folder.
//
// # Errors
//
// Shorten never fails: when a text cannot be kept, what it returns says so.
// [Relay.Read] returns [ErrUnknown] for a handle that is none, or whose text is gone.
package relay
