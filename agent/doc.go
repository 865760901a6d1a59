// Package agent is the run loop. A run takes the messages of a request on a
// thread, asks the model step by step, runs the tools that it asks for, and
// fires the nine phases at the plugins on the way. Background work reports
// through the thread's inbox; a [Compactor] keeps the thread within the context
// window beside all that.
//
// However a run ends (it is done, it was stopped, blocked, cancelled, or it
// failed) it leaves by one exit: what was said so far is in the log, run_end has
// fired, the thread's state is kept, and exactly one run_finish event is sent.
// The log that it leaves passes phases.CheckStructure, whatever model, tools and
// tasks gave: roles, ids and names are made to fit, every call has its result.
//
// # Concurrency
//
// An [Agent] may run many threads at once; one thread has one run at a time, and
// a second one is refused with [ErrThreadBusy]. Events reach Config.Listen one
// at a time per run; a step lies between step_start and step_end, a call between
// tool_call_start and tool_call_done, and the thread is free for its next run when
// the listener has heard run_finish. An Agent starts no goroutine that outlives a run, except a
// tool that ignores its cancelled context: it is abandoned after Config.Grace.
//
// # Errors
//
// [Agent.Run] returns an error when the run failed: the model's, a plugin's
// whose policy is to fail the run, or the context's. The [Result] is valid all
// the same. Stopped and blocked runs are not errors. A panic of the model, the
// list of tools or the compactor is [ErrPanic]; a panic of the listener is logged.
// [ErrMessages] and [ErrThreadBusy] refuse a run before it starts.
package agent
