// Package host runs WebAssembly modules: it loads, checks, compiles, limits and
// pools them, and calls their exports with bytes in and bytes out. It knows
// nothing about agents.
//
// A [Host] is made from a [Config]. [Host.Load] turns a [Spec] into a [Module];
// everything that is wrong with a module is reported there, in one sentence
// with the mend, as a [LoadError]. [Module.Call] runs one export. [Inspect] says
// what a binary is without running it.
//
// Guests follow the Extism convention: an export takes no parameters and
// returns an i32, zero for success; input, output and error text go through the
// imports of "extism:host/env". Two optional imports of "mortise:host/1" copy
// the whole input and the whole output at once: input_read(ptr) and
// output_write(ptr, len).
//
// Nothing is granted that [Grants] does not name: no files, no network, no
// environment, a fixed clock and fixed random numbers. Every size and every
// time has a limit; a zero in [Limits] is a safe default, never "no limit".
//
// # Concurrency
//
// A [Host] and a [Module] may be used by any number of goroutines. A call takes
// one instance of the module for itself; when all are busy it waits until one
// is free or its context is done. Instances are invisible: one that trapped,
// ran out of time or grew too large is replaced.
//
// Close a Module when nothing needs it any more; closing the Host closes all
// its modules. Both wait for calls in flight.
//
// # Errors
//
// A guest that says no gives a [GuestError]. A guest that breaks, or is stopped
// by a limit, gives a [TrapError]; when the caller's context ended the call,
// errors.Is finds context.Canceled or context.DeadlineExceeded in it. Anything
// else is one of the sentinels of this package. Text that a guest chose is cut
// to a sane length and its control characters are escaped before it gets into
// an error or a log.
package host
