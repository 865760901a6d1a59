// Package future measures what a summary keeps of what the agent needs later, on
// real compactions: recorded sessions in which a vendor compacted and the agent
// then continued. No model and no judge takes part.
//
// # Future use
//
// A [Fact] is a path, a URL, an identifier, a hash or a long number. It is needed
// when it stands before the compaction and the agent writes it into a tool call
// afterwards, before the user or a tool shows it again. A fact that the agent
// writes a second time counts once. Recall is the share of needed facts that the
// text holds: strict takes the exact string; lenient is also content with the last
// two parts of a path, and with a file name of five characters or more. Grounded
// asks in addition for a content word in the same unit, as package eval defines it.
//
// Measured are the first compactions of sessions with at least [Config.Least]
// needed facts. What follows ends at the next compaction.
//
// # Statements
//
// What a text states is held against the log, see [Statements]:
//
//   - files: those listed as read, modified and created, against the calls.
//   - false statements: a file listed as modified that no call modified, an outcome
//     of a command that no run of it had, words in quotation marks that are given as
//     the user's and that no message of the user holds.
//   - goal: the first and the latest request, word for word up to 300 characters.
//   - open: requests that were stopped, and items of the to-do list that are not done.
//
// Statements that the rules do not recognize are not counted, neither for nor
// against a text. Of a session whose log begins in the middle no statement is
// checked.
//
// # Sizes
//
// Texts are compared at the same size in bytes: that of the vendor's own summary,
// or a share of what was compacted. The vendor's text is measured at its own size.
//
// # Cost
//
// [Prices] are relative to fresh input. The calls behind a compaction are replayed
// under the rules of a prompt cache: what was sent before is read, what is new is
// written, and a swap or a pause longer than the cache's life writes everything
// behind the system prompt again. Costs are shares and compare texts. As amounts they
// are too low, 0.6 of what was billed for the sessions in the tests: thinking and
// attachments are in the bill and not in the log, and tokens are estimates.
//
// # Intervals
//
// Of 95 %, by the bootstrap over windows, with a fixed seed.
//
// # Concurrency
//
// [Run] works on one goroutine. Everything else is pure.
//
// # Errors
//
// [ErrNoWindows] means that no window has enough needed facts. Otherwise [Run]
// fails only on a config that cannot be measured and when its context ends; what a
// contender fails at is counted in its row.
package future
