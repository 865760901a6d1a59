// Package agentrun executes the dispatches of a mailbox with an agent: [Runtime] is the
// mailbox's, and gives each execution an [agent.Agent] of its own whose checkpoints are commits of the
// claim. So a run that has lost its thread cannot write to it, and one whose process ended continues in another one
// from its last checkpoint: with what it had said, and with calls that were under way marked as interrupted.
//
// # What becomes of a run
//
// A run that waits, for a decision or for tasks, gives its worker back: the mailbox has it as waiting, and
// the next request for the thread lets it continue. A run that failed in a way that may pass is left open, and the next
// attempt continues with it; one that failed for good is done. [Classify] distinguishes them.
//
// Messages have ids, and one that is in the log, or was handed to a run under way, is not taken a second time, however often
// it is delivered. A decision that a run under way takes is in its thread before it counts as taken: no crash makes the run ask again.
//
// # Tasks
//
// The notifications of background tasks and of compactions come from an inbox, by agent.Config.Take. Its wake is
// [Waker]: a run that waits for its tasks continues when one has ended.
//
// # Concurrency
//
// A [Runtime] is safe for concurrent use. It starts no goroutine.
//
// # Errors
//
// Errors of the agent come back as they are, those that no retry fixes also as mailbox.ErrPermanent.
package agentrun
