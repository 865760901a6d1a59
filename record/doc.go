// Package record keeps the decision records of runs: which plugin was called when,
// how much of the conversation it saw, what it answered, and what of that was applied,
// refused or overridden, and why. A run that waits and goes on is one record.
//
// A [Store] is where records are; record/recordtest is its contract as a test. A [Folder] has
// one file for each run, a line of JSON for each decision.
//
// A record has no messages, arguments, results or state values: only names, kinds,
// sizes and the reasons that plugins and the runtime gave, each bounded by the
// phase runtime. Folders are made for their owner alone (0700), files too (0600).
//
// # Bounds
//
// A record beyond Config.RunBytes counts what it leaves out. Opening a store removes the
// oldest records beyond Config.Keep. A line that is too long to be one of ours, or
// that a crash cut off, is left out when it is read, and counted.
//
// # Concurrency
//
// A [Store] is safe for concurrent use, and several processes may use one. Whoever
// opened it closes it.
//
// # Errors
//
// [ErrUnknown] is a run that the store does not have, [ErrAmbiguous] the beginning of
// several ids. Both name runs that there are. The others are those of
// the file system, or of the engine below.
package record
