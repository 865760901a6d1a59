// Package viewtest runs the suites of everything that is kept in a store on one engine: conversations, decision records, the inbox and the
// mailbox, alone and together, by one process and by two, and while processes are killed.
//
// # Concurrency
//
// The cases open stores of their own and run in parallel. Two handles of a store take turns as two processes would.
//
// # Errors
//
// They are failures of the test.
package viewtest
