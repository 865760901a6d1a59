// Package anchored writes a summary by asking a model to update a structured one, section by
// section. What the sections held before stays unless the model says something else in its
// place.
//
// # How it asks
//
// The model is that of a role which the operator grants. The transcript is cut into parts that
// fit its window besides the memory so far; each part is one question. If the questions or tokens
// that are left in the call do not suffice, tool outputs and then long messages are shortened,
// with a note in their place; when that is not enough, the call fails, and no part of the
// transcript is passed over.
//
// Everything that a participant wrote stands between tags, and text that looks like one of the tags
// is escaped: it cannot close one and speak in another voice.
//
// # How it checks
//
// An answer that has none of the sections (a refusal, an apology, nothing) is an error. A
// section that the model leaves out, or leaves empty, stays as it was; so do single constraints
// and files that got lost in a rewritten section. Files and tasks that the host knows are in the
// summary whatever the model says. With a ledger the model is given a rendering of it, a sixth of the
// budget is left for the host, and the text is marked as unverified: the host holds it against the log.
//
// # Concurrency
//
// [Summarize] keeps nothing. In a guest one call runs at a time.
//
// # Errors
//
// [Summarize] fails when there is nothing to summarize or no budget, when the window is too
// small, when an answer is of no use, and with the *capability.Error of a model that was not
// asked or did not answer.
package anchored
