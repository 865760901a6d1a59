// Package memstore keeps threads in memory, for tests and for programs whose work may end with them. It is the specification of the other
// stores: read apply.go first.
//
// A [Store] is safe for concurrent use. It starts no goroutine but those of Watch, which end with their contexts, and needs no Close.
package memstore
