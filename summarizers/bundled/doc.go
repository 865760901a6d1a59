// Package bundled holds the bundled compaction policies: a guest with the summarizers (ledger, gc,
// anchored) and one with the admissions (cost, quota, threshold). They are embedded
// compressed, and only in programs that import this package.
//
// [Open] opens a summarizer. A program that needs more control loads what [Summarizers] or [Admission] return, and
// chooses a policy with summarizers.Config.Policy. Sources, and a guest for each policy alone, are in the folder
// modules next to this package.
//
// # Concurrency
//
// All functions are safe for concurrent use. Each call unpacks anew, which takes some 30 ms,
// and keeps nothing.
//
// # Errors
//
// An error of [Summarizers] and [Admission] means that the program's own binary is damaged: the checksum is compared.
// Open also returns those of host and summarizers.
package bundled
