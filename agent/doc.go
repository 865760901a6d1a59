// Package agent is the run loop. A run takes the messages of a request on a
// thread, asks the model step by step, runs the tools that it asks for, and
// fires the nine phases at the plugins on the way. Background work reports
// through the thread's inbox; a [Compactor] keeps the thread within the context
// window beside all that.
//
// However a run ends (it is done, it waits, it was stopped, blocked, cancelled, or it
// failed) it leaves by one exit: what was said so far is in the log, run_end has
// fired, the checkpoint is saved, and exactly one run_finish event is sent.
// The log that it leaves passes phases.CheckStructure, whatever model, tools and
// tasks gave: roles, ids and names are made to fit, every call has its result.
//
// # Waiting
//
// A run waits for decisions about calls that a gate, a tool or a front end suspended
// ([Ticket], [Decision]), and for background tasks (Config.Pending). It has then
// finished, with [StatusWaiting], and goes on with the next [Agent.Run] on its
// thread: in this process or in another one that has the same [Checkpointer], and by
// itself with Request.Wait. It keeps its id, its counters and the state of its plugins;
// run_start and run_end fire each time. A suspended call has a message that stands in
// for its result, and gets the result in that place.
//
// # Native tools
//
// [CallOf] gives a tool the state of the run, changes of it, and a voice while it runs:
// output and activities, which listeners hear between the start and the end of its call.
// Changes go through phases, with the limits of a hook's reply, before the plugins see the
// result.
//
// # What is too large
//
// A request that a provider refuses as too large is cut at once ([Shrinker]), and asked
// once more; so are later ones, before they are sent, until a compaction takes the place
// of what was cut. Pinned messages, the user's newest one and the newest round stay, and
// calls keep their results. The log keeps everything.
//
// # Checkpoints
//
// A checkpoint follows each tool result, each step, and each decision, before anybody
// hears of it. It holds what is new. When a process ends in the middle of a step, what
// was said and done in it is kept, and calls without a result count as interrupted.
// Decided calls are carried out again under the same idempotency key.
//
// # Concurrency
//
// An [Agent] may run many threads at once; one thread has one run at a time, and
// a second one is refused with [ErrThreadBusy]. [Control] steers a run from other
// goroutines. Events reach Config.Listen one
// at a time per run; a step lies between step_start and step_end, a call between
// tool_call_start and tool_call_done, and the thread is free for its next run when
// the listener has heard run_finish, unless the run waits in the process. An Agent starts no goroutine that outlives a run, except a
// tool or a model that ignores its cancelled context: it is abandoned after Config.Grace.
//
// # Errors
//
// [Agent.Run] returns an error when the run failed: the model's, a plugin's
// whose policy is to fail the run, the store's, or the context's. The [Result] is valid all
// the same. Stopped, blocked and waiting runs are not errors. A panic of the model, the
// list of tools, the store or the compactor is [ErrPanic]; a panic of the listener is logged.
// [ErrMessages], [ErrThreadBusy], [ErrNoTicket] and errors about run ids refuse a run before it starts.
package agent
