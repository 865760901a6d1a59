// Package metrics counts what a Mortise runtime does, for Prometheus: requests to models with their tokens and costs, tool calls,
// hooks, compactions, background tasks, runs and modules. docs/observability.md lists the metrics.
// Those of the mailbox are in package mailboxmetrics.
//
// No label has the id of a run or a thread. Where plugins, models or clients choose the value of a label, a [Metrics] keeps
// the first [Config.Values] of them apart and counts the others together, as "other".
//
// # Concurrency
//
// [Metrics] is safe for concurrent use. It starts no goroutine. Config.Modules and Config.Tasks are called at each
// collection.
//
// # Errors
//
// [New] fails when the registry has metrics of these names already.
package metrics
