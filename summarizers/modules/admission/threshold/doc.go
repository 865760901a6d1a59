// Package threshold decides by the share of the window that the context takes, with
// hysteresis: a compaction may start when the context has reached the high mark, and only if it
// is expected to bring it below the low mark. Else it would be back at the high mark soon, and
// each compaction would lead to the next. From the force mark on it may start in any case.
//
// The numbers are integers in thousandths of the window. What is expected after a compaction is
//
//	tokens_before - range_tokens + range_tokens * summary_per_mille / 1000
//
// A request without a window or a range is decided by the host's own threshold.
//
// # Concurrency
//
// [Decide] is a pure function.
//
// # Errors
//
// There are none: every request has a decision.
package threshold
