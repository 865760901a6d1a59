// Package natsstore keeps a mailbox in NATS JetStream, for several machines that share a cluster.
//
// All that is known of a thread hangs on one record, its head, which is written by
// compare-and-swap: it holds the queue as references, the claim, and what has changed lately. All else is
// written before it, under a name of its own, and never changed: requests, messages, images, and pages of what
// changed longer ago. So a transition is made when its head is, and what a loser wrote is
// dropped. Records of dispatches and runs by id, their births, are created before the head that needs them: they find the
// thread, and keep ids unique. The birth of a dispatch takes along what has ended in the thread since the one before, so that a head is short
// whatever the history, and a cycle of a dispatch is five messages. What a process wrote that died before the head is dropped when it is old enough ([Store.Sweep]).
//
// An update starts from what the process knows of a thread, if it does: the head is compared when it is written. What writes
// nothing is decided by what the leader has.
//
// Every process follows the heads as they are written, and answers Due, Threads, Claims and Count
// from that; a listing first asks the leader how far they go. The same heads are delivered
// as signals, each to one process ([Store.Pull]): a thread that is due is heard of even if whoever wrote it died at
// once. Commands to runs go by request and reply and are not kept.
//
// # Durability
//
// JetStream acknowledges before the disk has what it acknowledges, unless the servers run with
// sync_interval: always. Without it, and on fewer than three servers, a power cut loses what was acknowledged.
// [Open] warns about what a client can see of that; give Config.Monitor to let it see all.
//
// # Failures
//
// When the server dies that leads the stream, nothing is acknowledged until another one does, which takes 4 to 10 s, and
// twice as long if two stand for election at once. The store hears of the new leader and goes on at once, if
// it may subscribe to $JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED; otherwise within Config.Wait.
// A leader that is cut off from the others acknowledges nothing, but answers reads until it notices, which takes 4 to 20 s. So a stream with
// replicas is not believed: before a store answers Load, Find or a listing, and before an update says that there is nothing to do, it
// has the leader write an empty record (a subject of its own, "q"), which those share that ask at once. On the side that is cut off these fail
// within Config.Patience. Due, Count and events are not made sure: they run behind there, and what is done about them is refused.
// When it is back, both servers answer for some seconds, until it hears of the other one: these wait until one does.
//
// # Formats
//
// Heads have a version. Records of earlier ones are read, and written anew as they change. A head of a later one is refused with an
// error that says so, as one of this version is by processes from before there was one, which call it damaged: stop all processes of
// a stream before the first is upgraded.
//
// # Beside a mailbox
//
// Packages outboxstore, sessionstore and recordstore keep what else an agent leaves, in streams of their own, over the connection of
// a [Store].
//
// # Subjects
//
// Thread, dispatch and run ids are in the subjects of messages, encoded; who may subscribe may read them.
//
// The events of dispatches (mailbox.EventLog) are in a stream of their own, named after the other one with "-events", which is made when there are
// some. They are kept for as long as the mailboxes that share it want (mailbox.Config.EventTTL).
//
// # Concurrency
//
// A [Store] is safe for concurrent use, and any number of processes may share a cluster. It starts goroutines and a connection;
// [Store.Close] ends them.
//
// # Errors
//
// mailbox.ErrExists says that an id belongs to another thread or a dedupe key is taken, mailbox.ErrConflict that
// messages do not follow the log. A store rides out elections and restarts of servers for Config.Patience; an error after
// that says nothing about what was written. Errors and logs have no credentials.
package natsstore
