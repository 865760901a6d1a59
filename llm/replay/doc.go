// Package replay answers from a recorded conversation in place of a model and
// its tools. The user, the model and the tools repeat what they said then; the
// runtime, its plugins and its policies do the rest anew.
//
// A driver asks [Replay.Next] for the input of a run, gives the [Replay] to the
// run as its model and tool runner, and continues until Next reports the end.
// Between two steps of a run it delivers what [Replay.Steering] returns: the
// messages that a user sent while tools were at work. Without them [Replay.Infer]
// has no answer to give, because the recorded one belongs after them.
//
//	for turn, ok := r.Next(); ok; turn, ok = r.Next() {
//		// run with turn.Messages, r.Infer and r.CallTool
//	}
//
// A run may end before the recording did: a gate stopped it, or a limit. Then
// results without a call are left out and Next continues after them. When
// the recording continues with an answer, the turn has no messages.
//
// # Concurrency
//
// A Replay serves one run at a time. Its methods may be called concurrently,
// so tools may run in parallel. It starts no goroutine and needs no closing.
//
// # Errors
//
// Infer returns *llm.Error. [ErrNoAnswer] is its cause where the recording has
// no answer at this place, the context's error where the wait was cut short.
// A tool call that the recording does not know is a tool result, not an error.
package replay
