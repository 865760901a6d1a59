// Package natsstore keeps threads in NATS JetStream, for several machines that share a cluster. It needs nats-server 2.12 or later.
//
// A stream has the operations of each thread on a subject of its own: a message for each batch, which the servers refuse unless the
// latest message of the subject is the one that the writer knew. Every process has a mirror, which consumes the operations and answers
// from what they add up to. When most of a thread's messages are out of date, its writer replaces them by a snapshot. The entries of
// logs are then moved to messages of their own, once, and deleted when they are trimmed. A dropped thread leaves a tombstone, which the
// servers delete after a week. What one message cannot hold, the claims of unique places and an operation are one atomic batch. The
// events are in a second stream, named after the first one with "-events".
//
// # Reads
//
// Before a read the leader of the stream is asked for the thread's latest message, and the mirror must have it. A leader of replicas
// may be cut off and not know it, so a stream with replicas must accept a write instead, on the condition that the mirror has the
// latest message. This needs the permission to publish, also with Config.Existing. Scan and Count ask the leader alone. Cells are in memory, and the entries of logs up to
// Config.Memory.
//
// # Durability
//
// JetStream acknowledges before the disk has what it acknowledges, unless the servers run with sync_interval: always. Without it, and on
// fewer than three servers, a power cut loses what was acknowledged. [Open] warns about that: a client cannot see the option.
//
// # Limits
//
// A batch may take about 990 new unique places, or have about 500 MiB: servers accept 1,000 messages at once. Larger ones fail. Servers
// accept 50 atomic batches of a stream at a time; a store tries again. Subjects have hashes of names, messages the names and values
// themselves: who may subscribe to the stream reads them.
//
// # Concurrency
//
// A [Store] is safe for concurrent use, and any number of processes may share a stream. It starts goroutines and a connection;
// [Store.Close] ends them.
//
// # Errors
//
// The errors are those of package store. While no server answers, calls are tried again for Config.Patience, except for writes that may
// have landed. Operations that were deleted behind the store's back, a stream that was deleted or made again, and a process that was
// suspended for days are errors; a restart reads the stream as it is then. Errors and logs have no credentials.
package natsstore
