// Package hybrid masks the output of tools and then summarizes what is left: with the model of
// a role if the operator grants one (package anchored), and else without a model (package extract).
//
// # Concurrency
//
// [Summarize] keeps nothing.
//
// # Errors
//
// Those of the two. A model that is granted and fails is an error, not a reason to continue
// without: the host has the fallback that the operator chose, and tells of it.
package hybrid
