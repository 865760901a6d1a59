// Package mask writes a summary without a model that keeps the dialogue as it was said and
// masks the output of tools: of each there is the call, its size, the lines that tell most, and
// the message in which it stands.
//
// # Format
//
// A first line describes what was masked and how it can be read. Then come the files and tasks that
// the host knows, and one entry for each thing that was said or done, in their order:
// "[user] ", "[assistant] " or "[tool ID] ", with further lines of its text indented. So
// nothing that a participant said can pass for another's entry, and a summary can be read back.
//
// # The budget
//
// Everything starts whole. While the text is too long, entries are shortened or left out, the
// oldest first: tool lines, then what the assistant said, then what the user said; the room that
// is left goes to the newest. Entries of
// the previous summary come before those of the range, so over a chain the oldest go first.
// What was left out is counted.
//
// # Concurrency
//
// [Summarize] keeps nothing and may be called from several goroutines.
//
// # Errors
//
// [Summarize] fails only when there is nothing to summarize or no budget.
package mask
