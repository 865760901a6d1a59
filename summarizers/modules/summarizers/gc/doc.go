// Package gc masks tool outputs that need not be in the context, before anything is summarized: the model
// sees the number with which the tool recall reads the original.
//
// # What is masked
//
// First what is dead, all of it:
//
//   - superseded: the same was read again later, and the later output has all lines of the earlier one or is
//     of the same range;
//   - duplicate: a later output is the same text;
//   - invalidated: a later call that did not fail changed the file;
//   - failed input: the long arguments of a change that failed, when a later change of the file did not.
//
// Then, oldest first and only until the context is small enough, what the same call can read again: files,
// listings, searches, fetched pages, and shell commands that only read.
//
// Relative paths and commands are the same only while no command changed the folder. Results of calls that
// failed supersede and change nothing. Pinned messages stay, and so do the arguments of a message with
// signed thoughts, which a provider may check together with them.
//
// # Concurrency
//
// [Summarize] keeps nothing and may be called from several goroutines.
//
// # Errors
//
// There are none. Where masks do not make the context small enough, or the host does not mask, [Summarize]
// declines, so that the fallback writes a summary.
package gc
