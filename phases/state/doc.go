// Package state holds the values that plugins keep for a run or a thread: a
// store of declared keys, updated by operations, never by writes.
//
// # Commits
//
// A commit applies operations to the keys that they name and makes one new
// revision. It is applied whole or not at all, whatever a reducer does. Conflicts
// are found key by key: a commit made from an older revision fails only when a key
// that it touches exclusively was changed since. Commutative operations are
// applied to whatever is there by then.
//
// A [Snapshot] costs nothing to take and stays as it is: a commit copies the table of the
// keys, which are few, and none of their values.
//
// # What is kept
//
// Nothing that came from outside is dropped. A value of a key that no plugin declares,
// or that its key cannot decode, is hidden from plugins and written back by the
// next export.
//
// # Concurrency
//
// A [Store] and a [Snapshot] are safe for concurrent use. A [Tx] belongs to one
// goroutine. Commits take turns; reads and snapshots never wait for one. Watchers
// are notified of commits in the order of their revisions, one at a time. A store starts no
// goroutine and needs no closing.
//
// # Errors
//
// [ErrConflict] and [ErrUnknownKey] are for callers who branch. Other errors name
// the key and what is wrong with the update.
package state
