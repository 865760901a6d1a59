// Package ledger is a summarizer policy without a model: it renders the ledger that the host keeps of
// the conversation, under the budget. To a host that sends none it gives a ledger of the messages and of
// what the previous summary shows.
//
// Package keeper is a copy of the host's keeper; internal/abigen writes it.
//
// # Concurrency
//
// [Summarize] keeps nothing and may be called from several goroutines.
//
// # Errors
//
// [Summarize] fails only when there is nothing to summarize or no budget.
package ledger
