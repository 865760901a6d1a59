// Package phases fires the phases of a run at plugins, merges what they reply
// and applies it. A plugin never changes a run: it replies with data, and only
// this package decides what becomes of it. It does not know what a plugin is
// made of; native ones and guests are the same to it.
//
// # How a phase is fired
//
// The hooks of a phase run concurrently, each on its own [abi.Event], all taken
// from one frozen snapshot of the state and the messages. Their replies are
// settled in firing order ([Runtime.Order]), so that the outcome does not depend
// on which hook was faster:
//
//   - A reply is applied whole or not at all. If any part of it is refused
//     (beyond the hook's mode, an undeclared state key, a value of the wrong type,
//     too large, a change that would break the structure of the conversation),
//     the whole reply is dropped, each refused part is recorded with its reason,
//     and the hook's failure policy applies.
//   - Updates of commutative keys with commutative operations merge. A hook that
//     touches an exclusive key, or a message, that an earlier hook touched is
//     deferred: it runs again, alone, on what the earlier ones made. That is safe
//     because a hook keeps nothing between calls. The operation set is exclusive
//     on every key; two pins of one message do not collide.
//   - State is committed once, after the last hook. When a hook fails whose policy
//     is to fail the run, or the context is done, nothing of the phase is applied.
//   - Others may commit while hooks run ([Runtime.Submit]). A hook whose exclusive
//     key they changed is deferred as well; after the second time in a row they
//     have to wait. So a commit from the background fails no run, and loses nothing.
//
// # Actions and effects
//
// A reply may schedule actions, for this phase or a later one, and ask for custom
// effects. Both go to the plugin that declares them in its description, as an event of
// their own. Other plugins may ask for those that are public.
//
// Actions that are due are executed after the hooks' commit, one after another,
// each in a commit of its own, in rounds until none is left. The number of rounds and
// the time are bounded. Effects are executed when everything is committed and the
// next phase may already continue, at most once. An action or effect that fails is a
// dead letter: it is kept with the thread, and can be taken back ([Runtime.Replay]).
//
// # Effects by phase
//
// An effect needs a mode of its hook, and a phase at which it can do something; elsewhere
// the reply is refused. Emit, notify and custom need observe and are for every phase. Stop
// needs gate, and is for all phases but run_end. The others need transform:
//
//   - append_messages: run_start, step_start, before_inference, step_end, run_end
//   - replace_message, mask_message, request_compaction: all phases of a run
//   - pin_message: the same, and before_compaction
//   - add_context: all phases of a run but run_end, and after_compaction
//   - exclude_tools, include_tools, override_inference: all phases of a run but run_end
//   - rewrite_call: tool_gate, before_tool_execute
//   - replace_response: after_inference
//   - replace_result: after_tool_execute
//   - focus_compaction: before_compaction; veto_compaction, too, for a hook of mode gate
//
// A call that is rewritten, an answer and a result that are replaced are exclusive, as a
// replaced message is: the later plugin is called again with what the earlier one made.
// The gate judges a rewritten call again, see [Runtime.Recheck]: the caller runs no call
// with arguments that the gate has not judged.
//
// # Who is called
//
// Config.Active leaves out hooks. It leaves out no state, no handler, and none of
// Config.Builtins.
//
// # Failure
//
// A hook fails when it returns an error, panics, misses Config.HookTimeout (or its own limit, see [Timed]) or has
// its reply refused. At the tool gate the policy fail blocks the call, with the
// hook's error as the reason. Elsewhere it ends the phase with a [*HookError].
// Gates fail by default, the others are ignored. A gate that asks for quarantine
// instead has no opinion while it is skipped, so it then fails open. A hook that ignores its context
// is abandoned after Config.Grace; its goroutine continues, but nothing waits for it and nothing reads its reply.
//
// # Structure guard
//
// Message effects keep the conversation in the shape that [CheckStructure]
// checks. Messages may be appended at run_start, step_start, before_inference,
// step_end and run_end, and only while no call waits for its result; an appended
// call must come with its result. Replacing and masking keep role, calls and
// links. Pinned messages are neither replaced nor masked. Thinking blocks cannot
// be made up, only kept.
//
// # Concurrency
//
// A [Runtime] is safe for concurrent use. A [State] belongs to one run; several
// goroutines may fire phases on it, and they take turns. A watcher of its store must
// not fire phases, since a phase waits for it. Config.Record is called
// by one goroutine at a time; Config.Now and Config.NewID must be safe for concurrent
// use. A Runtime has no Close: it starts no goroutine that outlives Fire, except
// those of abandoned hooks, which Limits.Abandoned bounds.
//
// # Errors
//
// [Runtime.Fire] returns one [*HookError] for each hook whose failure ends the
// run, joined, or the error of the context; [ErrNotConverged] when actions do not
// come to an end whose policy is to fail the run. [ErrDeadline], [ErrPanic] and
// [ErrRefused] are the reasons why a hook failed. Errors of [New] name the plugin and what is
// wrong with its description.
package phases
