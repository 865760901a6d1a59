// Package extract writes a summary of a conversation without a model: it picks
// the sentences, clauses and identifiers that carry facts, and puts them into
// fixed sections. The same input gives the same bytes.
//
// # How it chooses
//
// The text is cut into units (sentences, long ones at clause borders). Each unit
// holds concepts: identifiers, numbers with the word they belong to, names,
// content words. A concept weighs by its kind, by how rare it is and by who said
// it (a user's statement most, a tool's output least). Units are taken greedily
// by the weight of the concepts that are not covered yet, per byte, until the
// budget is full. So a fact stays in its own sentence, and is not kept twice.
//
// # Chains
//
// A previous summary is parsed back into its sections and its units compete with
// the new ones at a small discount. What had to be left out is counted in the
// text, also over a chain of summaries.
//
// # Cost
//
// The work grows with the number of bytes read, and what is read of one message
// is capped: [Config].
//
// # Concurrency
//
// [Summarize] keeps nothing and may be called from several goroutines.
//
// # Errors
//
// [Summarize] fails only when there is nothing to summarize or no budget.
package extract
