// Package mailboxmetrics counts what a mailbox does, for Prometheus. Names and labels are those of
// docs/observability.md; all begin with mortise_.
//
// # Concurrency
//
// [Metrics] is safe for concurrent use. It starts no goroutine. The depths of queues are read from
// the store when they are collected.
//
// # Errors
//
// [New] fails when a registry has metrics of these names already. When the store cannot be
// counted, a collection leaves the depths out and counts an error.
package mailboxmetrics
