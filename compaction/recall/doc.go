// Package recall is the tool with which a model reads what a compaction took out of its view.
//
// The numbers of messages in a summary, such as m12, are its handles. [Tool] reads one message, a range of them, or finds
// messages by words, in the log of the thread, where nothing is summarized or masked. Answers are pages of at most 8 KiB.
//
// # Concurrency
//
// A Tool is immutable and safe for concurrent use.
//
// # Errors
//
// Wrong arguments are reported in the result, for the model. A log that cannot be read is an error of the call.
package recall
