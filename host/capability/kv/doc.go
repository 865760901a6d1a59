// Package kv grants a namespace of a key-value store to guests: kv_get(key) -> value block or 0, kv_set(key, value),
// kv_delete(key) -> 1 when it was there, kv_list(prefix, after, limit) -> a block of keys, each after its length as a little-endian u32.
//
// # Concurrency
//
// A Store is safe for concurrent use, and so is a Memory.
//
// # Errors
//
// A quota that is used up is ErrQuota of a Store, and a code for the guest.
package kv
