// Package queue has the rules of package mailbox: what may become of a thread and its dispatches.
//
// A rule is a pure function of a turn: the state of a thread, the time and what is written. A transition reads the cells that its rule needs,
// applies the rule, and writes the cells that it changed as one batch under the revision that was read: all or nothing. When another process
// came between, it starts again. A batch whose answer was lost is applied once, see [store.ApplySurely].
//
// A thread has at most one claim: a lease with a token. A transition of its holder names it, and is refused when the claim is over and
// another one was made.
//
// # Concurrency
//
// A [Queue] is safe for concurrent use, also with others on the same store in other processes.
//
// # Errors
//
// They name the thread and wrap one of the sentinels, or an error of the store. Only a write whose answer was lost is an
// [ErrUnknownOutcome].
package queue
