// Package bundled holds plugins that need no toolchain: guard, which blocks dangerous shell commands at the tool gate, and
// redact, which takes credentials out of results. They are embedded compressed, and only in programs that import this package.
// Sources, what they do and what their configuration means are in examples/plugins. A config of the command names one as
// bundled:guard in place of a file.
//
// # Concurrency
//
// All functions are safe for concurrent use. Each call unpacks anew, which takes some 60 ms, and keeps nothing.
//
// # Errors
//
// An error of [Module] names the plugins that there are, or means that the program's own binary is damaged.
package bundled
