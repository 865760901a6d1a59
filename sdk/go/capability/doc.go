// Package capability holds what the packages for capabilities have in common: the
// codes with which a host reports that it did not do what was asked for.
//
// A guest that imports one of the packages kv, http and model imports its functions, and
// a host refuses to load it without the grant. So each is a package of its own, and a guest
// that does not use one does not need it.
//
// # Concurrency
//
// All of it may be used by any number of goroutines.
//
// # Errors
//
// The packages for capabilities return an [*Error]. It wraps its [Code], so that
//
//	errors.Is(err, capability.Quota)
//
// tells one from another.
package capability
