// Package store defines where threads are kept.
//
// A thread is a set of cells, which change, and of logs, whose entries do not. Both have one revision: a [Batch] changes any number of them
// at once, or nothing. What the cells and entries mean is up to the packages above: mailbox, thread and inbox are views of a store.
//
// # Implementations
//
// memstore keeps everything in memory, in a state that is the specification to read. sqlitestore, pgstore and natsstore last. Package
// storetest has the contract as tests.
//
// # What a store promises
//
// Durability: when Apply returns nil, the batch survives the end of the process. SQLite writes with WAL and synchronous=FULL, so it also
// survives a power cut, as far as the disk keeps what it has flushed. PostgreSQL has it when synchronous_commit is on, which is its default;
// a failover keeps what was replicated synchronously. JetStream has it on each server that acknowledged: a power cut that hits all of them
// loses what was not flushed, unless sync_interval is "always".
//
// Order: batches of one thread are ordered by their revisions. A read sees every batch that was acknowledged before it began, in whatever
// process, also behind a partition: a server that cannot be sure of that answers with an error. So do Scan and Count, but that a leader of JetStream
// which was cut off from the others may lag by some seconds.
//
// Failures: an error other than the ones below, and not marked by [NotApplied], means that the batch may have been applied. The caller repeats it under the same ID, or reads.
// [ApplySurely] and [Update] do that.
//
// # Concurrency
//
// Every Store is safe for concurrent use, also by several processes if its engine has a place that they share.
//
// # Errors
//
// [ErrConflict] reports another revision than Batch.Base, [ErrExists] a unique index key that another cell has, [ErrInvalid] a batch that no
// store accepts. All leave the store as it was.
package store
