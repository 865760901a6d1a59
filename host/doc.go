// Package host runs WebAssembly modules: it loads, checks, compiles, limits and
// pools them, and calls their exports with bytes in and bytes out. It knows
// nothing about agents.
//
// A [Host] is made from a [Config]. [Host.Load] turns a [Spec] into a [Module];
// everything that is wrong with a module is reported there, in one sentence
// with a hint, as a [LoadError]. [Module.Call] runs one export. [Inspect] reports
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
// # Capabilities
//
// What a guest may do beyond computing is a capability, a package below host/capability: fs, http, kv, log, messages and
// model. An embedder imports it, and the operator's [Grants] name it. A module that imports a function which its grants do
// not cover is refused by Load. What is granted is checked again in each host function, on both engines. [Function] is for
// host functions of the embedder's own.
//
// The imports are those of "mortise:host/1", and http_request and others of Extism. Keys, values, requests and answers are
// blocks of the Extism kernel, given by their offsets; as a key, a value, a prefix
// or a body, offset 0 is no bytes. A negative result is a code
// (docs/capabilities.md), and host_error() gives its text. An empty value differs from a missing one: kv_get
// returns an offset whose length is 0, not 0. Functions for which a guest can do without a grant answer that there is
// none: model_chat and model_info with the code for denied, messages_get and messages_read with nothing, log_info and its like by
// dropping.
//
// What the host does for a guest costs fuel, and ends with the call: code of the
// embedder gets a context that ends at the call's deadline, with the caller's
// context, and when the module is closed by force. While an instance is made there is
// no call, so a guest that uses one of these imports in its start function or its
// initialisation is not loaded; later instances would start from what it saw then.
// Folders may be used there.
//
// # Fresh state
//
// A call finds the guest as its initialisation left it; a [Session] keeps what its calls
// change. On Linux only the pages are reset that the process has of its own: the kernel of the
// operating system is asked before and after a call whether new ones came, which costs a microsecond.
// A guest that uses a capability costs the look at the list of its pages more, and where the kernel does
// not report them all pages are dropped, or copied.
//
// # Generations
//
// [Module.Swap] puts another binary in the place of the one in use: it is loaded,
// probed with describe, with the test vectors of its section "mortise:vectors" and
// by the caller, and then takes the new calls, while calls in progress
// end on the [Generation] before. The section is a JSON array of at most 64 objects: export; input and output, or input_base64 and
// output_base64; name for errors; refused where the guest must refuse the input. The former generation stays in reserve while the new one is
// watched: a generation that fails too often is rolled back by itself. Idle
// instances are closed after Limits.IdleTimeout.
//
// Guests keep nothing between calls. One that cannot do without asks for a
// [Session], which the operator grants.
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
// A guest that says no gives a [GuestError]. What was not granted is a
// [LoadError], a code for the guest, or a [TrapError] of the kind [TrapDenied];
// [Stats] counts such requests. A guest that breaks, or is stopped
// by a limit, gives a [TrapError]; when the caller's context ended the call,
// errors.Is finds context.Canceled or context.DeadlineExceeded in it. Anything
// else is one of the sentinels of this package. Text that a guest chose is cut
// to a sane length and its control characters are escaped before it gets into
// an error or a log.
package host
