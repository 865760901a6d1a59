// Package lane finds out which stateless requests belong together. A lane is requests that grow from each other: the
// main conversation of an agent, one of its sub-agents, a side request. It is found by what the client names it with,
// and else by the longest common prefix of what its messages mean.
//
// A [Set] has the lanes of a process. What must outlive it is a [State], in a [Log].
//
// # Concurrency
//
// A Set is safe for concurrent use. A [Lane] is used by one request at a time: [Lane.Lock] it. A Set starts no
// goroutine.
//
// # Errors
//
// Those of the Log. A Set works on in memory after one.
package lane
