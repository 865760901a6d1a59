// Package quota decides whether a compaction may start: one at a time, a bounded
// number for a session, a pause between starts, and not while memory, provider or
// queue are in trouble. Exactly one reason is given, the first that holds.
//
// # Concurrency
//
// [Decide] is a pure function.
//
// # Errors
//
// There are none: every request has a decision.
package quota
