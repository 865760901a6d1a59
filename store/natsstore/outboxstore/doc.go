// Package outboxstore keeps an outbox in NATS JetStream, beside a mailbox: in a stream of its own, whose name is that of
// the mailbox and "-outbox".
//
// Each thread has a log, of which a message is one or more operations: what is appended with its record and its key,
// what is removed, what is forgotten. A message is written only behind the one that its writer knew last. So each operation
// is made whole or not at all, and once, however often it was sent. Operations that come at the same time share a
// message. All that is live is in memory too. When most of a log is about what has gone, a message with all that is live
// takes its place; the log of a thread of which nothing is left is dropped.
//
// # Concurrency
//
// A [Store] is safe for concurrent use, and starts no goroutine. It has no Close: whoever opened the natsstore.Store closes
// that, after the Outbox. One Outbox at a time uses a stream. A second one does no harm to what is kept: it learns at each of
// its writes what others have written, and not before.
//
// # Errors
//
// An error means that nothing was kept. When no server said so, as while none could be reached for Config.Patience of the
// natsstore.Store, the store sees to it at the next write to the thread; a process that ends before
// leaves it open. outbox.ErrTooLarge is one operation that is too large, outbox.ErrFull that [Config].MaxBytes are live. A stream
// that would lose messages, or has lost some, is refused by [New].
package outboxstore
