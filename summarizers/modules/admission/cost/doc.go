// Package cost decides whether a compaction costs less than it saves over the steps that a
// conversation is expected to continue for.
//
// With R tokens in the range, B in the context, S = R * summary_per_mille / 1000 expected in the
// summary, N expected steps, and prices for a million tokens:
//
//	p      = input_price * (1000 - cached_per_mille) / 1000 + cached_price * cached_per_mille / 1000
//	saving = N * (R - S) * p
//	cost   = R * summarizer_input_price + S * summarizer_output_price + (B - R + S) * (input_price - p)
//
// p is what a token of the context costs in a step. The last term is the prompt cache: what
// stands behind the range is sent once more at the full price. A compaction may start when
//
//	saving * 1000 >= cost * margin_per_mille
//
// or when the context takes force_per_mille of the window, since then cost is not the question.
// Without an input_price in the config the host's estimate replaces the prices where there is
// one: saving is N times its SavedMicros, and the last term of cost its RewriteMicros.
//
// All of it is integer arithmetic; a saving is rounded down and a cost up.
//
// # Concurrency
//
// [Decide] is a pure function.
//
// # Errors
//
// There are none: every request has a decision.
package cost
