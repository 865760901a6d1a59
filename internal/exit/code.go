package exit

import (
	"context"
	"errors"
)

// Code is what the process returns. The codes are part of the interface.
type Code int

// Exit codes.
const (
	// OK: everything was done.
	OK Code = 0
	// Run: a run failed.
	Run Code = 1
	// Usage: the command line is wrong, or what it names is not there.
	Usage Code = 2
	// Config: the config file is missing or wrong. A checksum, policy, grant or
	// config of a module that does not fit the module is in it, too.
	Config Code = 3
	// Session: the session, store or record is there and cannot be read.
	Session Code = 4
	// Module: a module failed to load; nothing ran.
	Module Code = 5
	// Interrupted: Ctrl-C or a termination signal; the report is partial.
	Interrupted Code = 130
)

// String is what the code means.
func (c Code) String() string {
	switch c {
	case OK:
		return "done"
	case Run:
		return "a run, a plugin or a policy failed"
	case Usage:
		return "wrong command line, or nothing of that name"
	case Config:
		return "the config does not fit"
	case Session:
		return "the session cannot be read"
	case Module:
		return "a module failed to load"
	case Interrupted:
		return "interrupted, the report is partial"
	default:
		return "unknown"
	}
}

// coded is an error that knows its exit code.
type coded struct {
	code Code
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// With gives an error an exit code, unless it has one. A nil error stays nil.
func With(code Code, err error) error {
	if known := (*coded)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	return &coded{code: code, err: err}
}

// Always gives an error an exit code, also one that has another.
func Always(code Code, err error) error { return &coded{code: code, err: err} }

// Or is the exit code that an error has, or another one.
func Or(other Code, err error) Code {
	if known := (*coded)(nil); errors.As(err, &known) {
		return known.code
	}
	return other
}

// NotFound gives an error the code of what the command line names and is not there.
func NotFound(err error) error { return With(Usage, err) }

// Of returns the exit code for an error.
func Of(err error) Code {
	switch {
	case err == nil:
		return OK
	case errors.Is(err, context.Canceled):
		return Or(Interrupted, err)
	default:
		return Or(Usage, err)
	}
}
