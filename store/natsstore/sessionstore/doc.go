// Package sessionstore keeps sessions in NATS JetStream, beside a mailbox: the messages of threads, and what became of their
// compactions, in a stream of its own, whose name is that of the mailbox and "-sessions".
//
// What one Append was given is one record of a thread's log, up to some megabytes, and each record has a subject that can be
// written once: so the log has no gaps, and what was sent twice is there once. A state takes the place of the one that it was made from;
// its revision is its number in the stream. Of events the server keeps the newest session.MaxEvents.
//
// A message of more than 512 KiB is written in pieces first; those of a process that ended in between stay, and nobody sees them.
//
// Thread ids are in the subjects of records, encoded, or hashed if they are long.
//
// # Concurrency
//
// A [Store] is safe for concurrent use and starts no goroutine; several processes may use one stream. Closing it lets go of the
// threads alone: whoever opened the natsstore.Store closes that, after it.
//
// # Errors
//
// session.ErrUnknown is a thread without a log, compaction.ErrConflict a state that was changed meanwhile. A call rides out elections
// and restarts of servers for Config.Patience of the natsstore.Store; what it was about may have been kept when it fails then: a log takes
// the same messages once when they are given again to the same Store, and the next Swap finds out. Messages of more than 64 MiB and events of more than 512 KiB are
// refused.
package sessionstore
