// Package tables keeps sets of tables in one schema of PostgreSQL, each with versions of its own. What the tables mean is
// for the packages above.
//
// # Concurrency
//
// [Tables] is safe for concurrent use. Whoever made the pool closes it.
//
// # Errors
//
// [Tables.Migrate] refuses tables that are newer than the program. A transaction that failed before anything was written is made again, a
// few times; a connection that breaks during a commit leaves the outcome open.
package tables
