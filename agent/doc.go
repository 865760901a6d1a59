// Package agent is the run loop. A run takes the messages of a request on a
// thread, asks the model step by step, runs the tools that it asks for, and
// fires the nine phases at the plugins on the way. Background work reports
// through the thread's inbox; a [Compactor] keeps the thread within the context
// window alongside all that.
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
// finished, with [StatusWaiting], and continues with the next [Agent.Run] on its
// thread: in this process or in another one that has the same [Checkpointer], and by
// itself with Request.Wait. It keeps its id, its counters and the state of its plugins;
// run_start and run_end fire each time. A suspended call has a placeholder message
// for its result, and gets the result in that place.
//
// # What plugins change
//
// A call runs with the arguments that the gate has judged last. Plugins may rewrite them, at
// the gate and after it, and then the gate judges the call again. A question about a call
// that was answered counts for the arguments that it was asked with. The log keeps what
// the model wrote; the tool message names the plugins ([MetadataRewrittenBy]) and what the
// tool got ([MetadataArguments]). Calls whose arguments are not JSON get as far, if there is
// a plugin that could rewrite them.
//
// An answer that a plugin replaced is the one that its tools run from and that all others
// see. What the model wrote is in the stored message alone ([Original]); what was streamed
// cannot be taken back, and a messages_snapshot corrects it. Of a replaced result no original
// is kept. Notifications that plugins leave are part of the checkpoints until a step shows
// them.
//
// # Native tools
//
// [Func] makes a tool of a Go function, with the JSON Schema of its input, and [Funcs] makes
// [Tools] of several. [CallOf] gives a tool the state of the run, changes of it, and a voice while it runs:
// output and activities, which listeners hear between the start and the end of its call.
// Changes go through phases, with the limits of a hook's reply, before the plugins see the
// result.
//
// # What is too large
//
// A request that a provider refuses as too large is cut at once ([Shrinker]), and asked
// once more; so are later ones, before they are sent, until a compaction replaces
// what was cut. Pinned messages, the user's newest one and the newest round stay, and
// calls keep their results. The log keeps everything.
//
// # Checkpoints
//
// A checkpoint follows each tool result, each step, and each decision, before any listener
// receives it. It holds what is new. One more precedes the gates of a step with calls: it holds the
// model's answer as after_inference left it, its usage and the state of the plugins. If a gate or a
// hook before a tool then changes state or the answer, a checkpoint precedes that tool too.
//
// When a process ends in the middle of a step, the next one does not ask the model again: what
// was said and done in it is kept, and calls without a result count as interrupted, which the
// model reads. Only an answer that had not come through after_inference is asked for again.
// Decided calls are executed again under the same idempotency key: a key is made of the run, the
// step, the message and the call.
//
// # Concurrency
//
// An [Agent] may run many threads at once; one thread has one run at a time, and
// a second one is refused with [ErrThreadBusy]. [Control] steers a run from other
// goroutines. Events reach Config.Listen one
// at a time per run; a step lies between step_start and step_end, a call between
// tool_call_start and tool_call_done, and the thread is free for its next run when
// the listener has received run_finish, unless the run waits in the process. An Agent starts no goroutine that outlives a run, except a
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
