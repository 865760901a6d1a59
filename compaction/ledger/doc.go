// Package ledger keeps the state of a conversation while it grows, and renders it as a summary.
//
// A [Ledger] reads each message once: requests and what became of them, rules of the user, tasks and
// plan, files that were read and changed, commands with their outcome, errors and whether they were
// seen to pass later, commits, findings, look-ups, the latest steps, and the names that occur, with who
// used them. Of dialogues it keeps the speaker of each sentence, of tools that return records the values with the
// record that owns them. [Ledger.State] is plain data, which can be stored; [From] continues it.
//
// [Render] writes a state under a budget in bytes: readable sections, the most important first, with
// message numbers as handles. [ReadBack] restores most of a state from such a text, for hosts that keep
// nothing else. [Trim] leaves out of a state what a rendering cannot show.
//
// # Truth
//
// What a rendering claims, the log shows. Quotations are byte for byte, by the speaker that they are
// given to. A file is listed as changed when the result of the call is no error. A command is "ok" only
// when its status is known, or a line of its output shows success; one whose status a pipe hides is
// "ended". A summary that stands in a log, and what a program wrote in the user's place, are not the
// user's words.
//
// # Cost
//
// The time to read a message grows with its length alone, and all lists are bounded: a state has at
// most about a megabyte, whatever the log holds. The same messages give the same state, in one call of
// Add or in many, as long as calls and their results are read in order.
//
// # Concurrency
//
// A Ledger is not safe for concurrent use. The functions are pure.
//
// # Errors
//
// There are none: whatever a log holds is read as far as it is understood. A tool that is not known
// leaves a step and names.
package ledger
