// Package cost decides whether a compaction costs less than it saves.
//
// The unit is a thousandth of a token of fresh input. A cached token costs [Terms.Read] of them and a token that
// is written to the cache [Terms.Write]. A compaction shortens each later request by S tokens, and makes the
// provider read R tokens anew once, as they follow the unchanged start of the context:
//
//	saving = Steps * Read * S
//	cost   = Write * R - Read * (S + R)     the cache holds the context
//	cost   = -Write * S                     it does not: the next request pays for its whole context anyway
//
// and the summarizer's own price is added. [Decide] refuses besides when the view has hardly grown since the
// latest compaction, and when too small a share of it would be saved. Near the end of the window the cost is
// not the question, and a compaction that a person asked for is only refused when nothing would be saved.
//
// [Terms.Of] completes the terms with what the host knows of the model: its prices, else those of its family.
//
// All of it is integer arithmetic.
//
// # Concurrency
//
// The functions are pure.
//
// # Errors
//
// There are none: every request has a decision.
package cost
