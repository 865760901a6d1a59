// Package engine keeps tables in one SQLite file: one writes at a time, in groups, and
// others read beside it. What the tables mean is for the packages above.
//
// The file is in WAL mode with synchronous FULL, private, and safe for several processes
// at once. [File.Write] returns when the change is on the disk, [File.WriteSoft] as soon as it outlives the process.
//
// The driver is used below database/sql, which would cost as much again for each of the small
// statements that are run here.
//
// # Concurrency
//
// A [File] is safe for concurrent use; whoever opened it closes it. A [Conn] belongs to
// the function that it was handed to, until that returns.
//
// # Errors
//
// [ErrClosed] is a file that was closed. A file of another program, or of a newer version
// of this one, is refused and not touched. [ErrMoved] is one that was moved, replaced or removed under the process that has it. Errors of SQLite come wrapped; nothing of the change was kept
// then, except when the error came from the commit itself.
package engine
