// Package recordstore keeps decision records in NATS JetStream, beside a mailbox: in a stream of its own, whose name is that of the
// mailbox and "-records". A run has a subject, and each line of its record is a message.
//
// # Concurrency
//
// A [Store] is safe for concurrent use and starts no goroutine; several processes may use one stream. Two that write to one run at
// once count its bytes each for themselves, so that it may become that much larger; one that somebody removes while it is written has no
// beginning, and cannot be read. Closing a Store lets go of the records alone: whoever
// opened the natsstore.Store closes that, after it.
//
// # Errors
//
// record.ErrUnknown and record.ErrAmbiguous are about the id that was asked for. A call rides out elections and restarts of
// servers for Config.Patience of the natsstore.Store; what it was about may have been kept when it fails then.
package recordstore
