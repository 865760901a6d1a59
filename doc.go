// Package mortise assembles an agent program: the run loop with its models, tools and
// plugins, background tasks, compaction, notifications and a durable mailbox that dispatches
// runs. [New] connects the parts so that results of tasks and of compactions reach a thread
// whether or not it has a run, and waiting runs continue by themselves.
//
// The parts are packages that stand alone: agent, phases, plugins, compaction, background,
// inbox, mailbox. Import them directly to build something else.
//
// # Concurrency
//
// A [Runtime] is safe for concurrent use. Close it before the stores of its [Config], which
// belong to the caller.
//
// # Errors
//
// Errors of the parts are returned wrapped. [agent.ErrNoAgent] is a request for an agent that
// Config.Agents lacks.
package mortise
