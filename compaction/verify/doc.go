// Package verify holds a summary that a model wrote against the log that it is about.
//
// A [Log] is what can be checked: which files the calls changed, created and read, what the commands came to, what
// the user said, and which names and numbers occur at all. [Log.Strike] takes the lines out of a text that state
// something else:
//
//   - a file that is listed as changed or created, and no call changed it, with what is said of it below;
//   - a command that is said to pass and never did, or to fail and never did;
//   - words that are quoted as the user's, and are not;
//   - a quoted value, name or number that occurs nowhere in the log.
//
// What a text leaves open, such as a reason or a plan, is not judged. Code between fences is left alone, as models
// shorten it. What is missing is added by ledger.Supplement.
//
// # Concurrency
//
// A Log is immutable and safe for concurrent use.
//
// # Errors
//
// There are none: a line that is not understood stays.
package verify
