package livecmd

import "log/slog"

// Options are the flags of mortise run for a prompt.
type Options struct {
	Config, Store        string
	Thread, Agent, Model string
	Approve              string
	JSON, Quiet, LogSet  bool
	LogLevel             slog.Level
}
