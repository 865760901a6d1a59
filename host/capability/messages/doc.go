// Package messages lets guests read more than their input, as far as the context of a call offers it.
//
// # Concurrency
//
// What a context offers is read on the goroutine of the call.
//
// # Errors
//
// An error of a RangeFunc ends the guest.
package messages
