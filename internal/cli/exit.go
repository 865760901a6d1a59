package cli

import (
	"context"
	"errors"
	"strings"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/guest"
	"github.com/mortise-dev/mortise/summarizers"
)

// ExitCode is what the process returns. The codes are part of the interface.
type ExitCode int

// Exit codes.
const (
	// ExitOK: everything was done.
	ExitOK ExitCode = 0
	// ExitRun: a run failed.
	ExitRun ExitCode = 1
	// ExitUsage: the command line is wrong, or what it names is not there.
	ExitUsage ExitCode = 2
	// ExitConfig: the config file is missing or wrong. A checksum, policy, grant or
	// config of a module that does not fit the module is in it, too.
	ExitConfig ExitCode = 3
	// ExitSession: the session, store or record is there and cannot be read.
	ExitSession ExitCode = 4
	// ExitModule: a module failed to load; nothing ran.
	ExitModule ExitCode = 5
	// ExitInterrupted: Ctrl-C or a termination signal; the report is partial.
	ExitInterrupted ExitCode = 130
)

// String is what the code means.
func (c ExitCode) String() string {
	switch c {
	case ExitOK:
		return "done"
	case ExitRun:
		return "a run, a plugin or a policy failed"
	case ExitUsage:
		return "wrong command line, or nothing of that name"
	case ExitConfig:
		return "the config does not fit"
	case ExitSession:
		return "the session cannot be read"
	case ExitModule:
		return "a module failed to load"
	case ExitInterrupted:
		return "interrupted, the report is partial"
	default:
		return "unknown"
	}
}

// coded is an error that knows its exit code.
type coded struct {
	code ExitCode
	err  error
}

func (c *coded) Error() string { return c.err.Error() }
func (c *coded) Unwrap() error { return c.err }

// with gives an error an exit code, unless it has one. A nil error stays nil.
func with(code ExitCode, err error) error {
	if known := (*coded)(nil); err == nil || errors.As(err, &known) {
		return err
	}
	return &coded{code: code, err: err}
}

// notFound gives an error the code of what the command line names and is not there.
func notFound(err error) error { return with(ExitUsage, err) }

// withModule gives an error of loading modules its code.
func withModule(err error) error { return with(moduleCode(err), err) }

// moduleCode is the code of what failed while modules were loaded: the config is wrong if nothing else is.
func moduleCode(err error) ExitCode {
	if joined := joinedErrors(err); joined != nil {
		for _, e := range joined {
			if code := moduleCode(e); code != ExitConfig {
				return code
			}
		}
		return ExitConfig
	}
	for _, mistake := range []error{host.ErrChecksum, guest.ErrNotGranted, guest.ErrConfig, summarizers.ErrPolicy} {
		if errors.Is(err, mistake) {
			return ExitConfig
		}
	}
	if known := (*coded)(nil); errors.As(err, &known) {
		return known.code
	}
	return ExitModule
}

// joinedErrors returns what errors.Join has joined, or nothing.
func joinedErrors(err error) []error {
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || err.Error() != joinText(joined.Unwrap()) {
		return nil
	}
	return joined.Unwrap()
}

func joinText(errs []error) string {
	texts := make([]string, len(errs))
	for i, e := range errs {
		texts[i] = e.Error()
	}
	return strings.Join(texts, "\n")
}

// codeOf returns the exit code for an error.
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
