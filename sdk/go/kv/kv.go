// Package kv keeps keys and values from call to call, in a space that the operator
// grants. Importing it means that the guest does not load without the grant kv.
//
// A guest keeps nothing else between calls, so this is the place for a cache, or for
// what belongs to no single run. Several guests may share a space: begin keys with
// a name of your own. The operator bounds the number of keys and the bytes.
//
// Natively, the package works on the map that a test gives to Provide.
//
// # Concurrency
//
// A guest runs one call at a time, but other instances use the same space at the same
// time. A single function is atomic; two of them are not.
//
// # Errors
//
// The functions return a *capability.Error: Denied for a space that is read-only, Quota for one
// that is full, TooLarge for a key or value above the operator's bounds, Invalid for an
// empty key, Failed for a store that broke.
package kv

import "iter"

// Get returns a copy of the value of a key, and whether it is there.
func Get(key string) (value []byte, found bool, err error) { return get(key) }

// Set puts a value in place of the one that is there.
func Set(key string, value []byte) error { return set(key, value) }

// Delete removes a key and reports whether it was there.
func Delete(key string) (was bool, err error) { return remove(key) }

// List yields the keys that begin with prefix, in the order of their bytes. Keys that come
// or go meanwhile may be in it or not. An error ends it, after an empty key.
func List(prefix string) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		after := ""
		for {
			page, err := list(prefix, after)
			if err != nil {
				yield("", err)
				return
			}
			if len(page) == 0 {
				return
			}
			for _, key := range page {
				if !yield(key, nil) {
					return
				}
			}
			after = page[len(page)-1]
		}
	}
}
