// Package blob keeps large texts out of a conversation. The conversation has the beginning and the end of a text, and a
// handle with which a model reads the rest.
//
// A text is a cell of its thread in a store.Store: what deletes the thread deletes its texts. [Store.Prune] deletes
// texts that are older than Config.MaxAge, and the oldest ones while all of them have more than Config.MaxBytes or are more
// than Config.MaxCount. It runs now and then when a text is stored, and in [Store.Maintain] also when none is.
//
// # Concurrency
//
// A Store is safe for concurrent use and starts no goroutine. Several processes may use one store.
//
// # Errors
//
// Shorten never fails: when a text cannot be stored, what it returns says so. [Store.Read] returns [ErrUnknown] for a
// handle that the thread does not have, or whose text was deleted.
package blob
