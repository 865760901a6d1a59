// Package plugins makes guests into phases.Plugin values: it loads their
// modules, asks each to describe itself, agrees on a contract version, checks
// the operator's config and hands events and replies across.
//
// A [Set] is what an operator configured. [Load] never loads half of it in
// silence: each entry ends as loaded, skipped or failed, with the reason and
// the hint in its [Status], and the error names every entry that failed.
//
// What a plugin asks for is compared with what the operator granted: something that is
// missing is an error with the plugin's own reason, and the rest stands in
// Status.Granted and Status.Notes. [Set.Swap] puts another binary in the place of a
// plugin's while runs use it.
//
// A guest has fresh state in each call. One that asks for abi.CapabilitySticky, and is granted it,
// has one instance for the phases of each run, as long as there is room for it; see
// docs/capabilities.md.
//
// # Concurrency
//
// A [Set] and its plugins are safe for concurrent use. The caller of [Load]
// closes the Set, after the last run that uses it.
//
// # Errors
//
// Errors of loading are those of host and of the guest's description; they name
// the module and how to fix it. Errors of a call are host.GuestError (the guest
// said no), host.TrapError (it broke) or a decoding error. [ErrShape] is that of a swap
// which the phase runtime could not follow.
package plugins
