// Package log writes to the log of the host. It is a package of its own because
// a guest that imports it asks for the log functions of the host.
//
// A log line is for the operator: never write a secret or a prompt to it. Lines
// of more than 4 KiB are cut. Natively, lines go to standard error.
//
// # Concurrency
//
// The functions are safe for concurrent use.
//
// # Errors
//
// The functions have none. A host may drop what they write.
package log

// maxLine bounds a line, in bytes.
const maxLine = 4 << 10

// Debug writes a line for debugging the guest.
func Debug(line string) { write(levelDebug, line) }

// Info writes a line about what happens.
func Info(line string) { write(levelInfo, line) }

// Warn writes a line about something that is wrong but not fatal.
func Warn(line string) { write(levelWarn, line) }

// Error writes a line about something that failed.
func Error(line string) { write(levelError, line) }

type level int

const (
	levelDebug level = iota
	levelInfo
	levelWarn
	levelError
)
