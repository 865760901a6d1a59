// Package config is mortise.yaml: its structs with their defaults, a strict reader that finds all problems
// with their lines, the JSON Schema, and what differs between two configs. It opens nothing.
//
// # Concurrency
//
// A [Config] is read concurrently once it is loaded; its methods do not change it, except those that apply flags.
//
// # Errors
//
// An error names the key and what to write in its place. Several are joined.
package config
