// Package phasestest helps to test plugins and those who fire phases at them: a
// plugin that answers from a script, a recorder of what hooks did, and a contract
// suite that any plugin should pass, native or guest.
//
// # Concurrency
//
// [Scripted] and [Recorder] are safe for concurrent use.
//
// # Errors
//
// The suite reports through the testing.T that it was given.
package phasestest
