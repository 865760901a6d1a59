// Package thread is the log of a conversation: its messages, what happened to its compactions, and what plugins decided in its runs, all in
// the thread of a store.Store that has the conversation's id. Package mailbox keeps the queue, the runs and the claims of the conversation
// in the same thread, and its messages in the same form, so that everything here works on conversations of mortise run and of mortise serve
// alike.
//
// # What a thread has
//
//	log  "message"         messages, each a [Message] encoded with [Message.Encode]
//	cell "message" PLACE   the message that replaces the one at a place of the log, in the same form; PLACE is [Place]
//	cell "log"             makes [Threads.List] list the thread: see [Listed]
//	cell "compaction"      the compaction state with its revision, in JSON
//	log  "compaction"      what happened to compactions, a compaction.Event in JSON each, at most [MaxEvents]
//	cell "record" RUN      the decision record of a run: its first line, its size, and when it was written last, in JSON
//	log  "decision/RUN"    the lines of that record, some to an entry, each a [Line] in JSON with a newline at its end
//
// A [Commit] changes any of these in one Apply. Dropping the thread deletes them all.
//
// # Bounds
//
// A message has at most [MaxMessage] bytes. Of the events of a thread the newest [MaxEvents] stay. A decision record beyond
// RecordConfig.RunBytes counts what it leaves out, and [NewRecorder] removes the oldest records beyond RecordConfig.Keep.
//
// # Concurrency
//
// [Threads], [Records] and [Recorder] are safe for concurrent use, also by several processes on one store. A [Recorder] writes in the
// background and must be closed. The store is closed by the caller, after all of them.
//
// # Errors
//
// [ErrUnknown] is a thread without a log, compaction.ErrConflict a compaction state that was changed meanwhile, [ErrNoRecord] a run without
// a record, [ErrAmbiguous] the beginning of several runs' ids. Other errors are those of the store; they name the thread or the run.
package thread
