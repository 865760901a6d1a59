// Package eval measures what compaction keeps, without a model. A [Probe] is a
// fact that a conversation holds; [Run] compacts conversations by each
// [Contender], at each budget, once and in chains, and counts the probes whose
// fact is still there.
//
// # Scores
//
// A fact is one or more strings, its needles. A probe with keys has one needle
// for each key, and its score is the share of them that survive. A probe without
// keys is satisfied by any one of its answers.
//
//   - literal: the needle stands in the text, in any case, and touches no letter,
//     digit or underscore of ASCII at its ends.
//   - grounded: at one of those places a content word stands in the same unit: the
//     sentence, item or line, of which at most 200 bytes on each side are read.
//
// Content words are those of the question, and are found where a word begins with
// one. Without a question they come from the sentences that held the needle in the
// conversation (the first 64, and of each at most 200 bytes on each side of the
// needle): those that stand there in lower case and by themselves, found in the
// same way, so that neither names nor parts of identifiers and paths ground a
// needle. A content word has four letters or more, is no stop word, and is not
// part of the needle.
//
// A needle that the conversation does not state word for word is left out, and so
// is a probe that has no other. A needle that nothing could ground, such as a line that
// is a needle by itself, does not count for the grounded score.
//
// A bag of identifiers scores on the first and fails on the second.
//
// # Budgets
//
// A [Budget] is a share of the bytes of the conversation, written out as [Flatten]
// does: text, and calls with their arguments. A number of tokens is turned into a
// share. Leading system messages are no part of it: they are never summarized and
// stay in the view. A text that is longer is cut at the budget before it is scored,
// and counted as an overrun. A contender that fails keeps what it had before, and
// scores with that.
//
// # Chains
//
// In a chain of k the conversation is cut at the ends of rounds into k parts of
// about equal size, or as many as it has rounds. After each part the contender
// gets that part and its own summary of everything before, as in a session that continues;
// nothing but the last summary is scored. The budget is either the same each
// time, that of the whole conversation ([OfWhole], as an operator's setting is), or
// grows with what has been said ([OfSaid], so that each compaction is as tight as
// the others). Of each chain the report says two more things: what the first
// compaction kept of the facts that the first part states, and how much of that
// the last one has still.
//
// # Concurrency
//
// [Run] works on one goroutine. Everything else is pure and may be called
// concurrently. Baselines are stateless.
//
// # Errors
//
// Reading errors name the file and the line. [Run] fails on a config that cannot
// be measured and when its context ends; a contender's failure is counted in its
// row.
package eval
