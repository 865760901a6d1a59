package cli

import (
	"context"
	"errors"
)

// ExitCode is what the process returns. The codes are part of the interface.
type ExitCode int

// Exit codes.
const (
	// ExitOK: everything was done.
	ExitOK ExitCode = 0
	// ExitRun: a run failed.
	ExitRun ExitCode = 1
	// ExitUsage: the command line is wrong.
	ExitUsage ExitCode = 2
	// ExitConfig: the config file is missing or wrong.
	ExitConfig ExitCode = 3
	// ExitSession: the session cannot be read.
	ExitSession ExitCode = 4
	// ExitModule: a module failed to load; nothing ran.
	ExitModule ExitCode = 5
	// ExitInterrupted: Ctrl-C or a termination signal; the report is partial.
	ExitInterrupted ExitCode = 130
)

// coded is an error that knows its exit code.
type coded struct {
	code ExitCode
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// with gives an error an exit code. A nil error stays nil.
func with(code ExitCode, err error) error {
	if err == nil {
		return nil
	}
	return &coded{code: code, err: err}
}

// codeOf says how the process ends with that error.
func codeOf(err error) ExitCode {
	var c *coded
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &c):
		return c.code
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	default:
		return ExitUsage
	}
}
