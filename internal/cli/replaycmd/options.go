package replaycmd

import (
	"log/slog"
	"time"
)

// Options are the flags of mortise run for a recording.
type Options struct {
	Session, Conversation    string
	Config, Store            string
	RecordStore              string
	NoRecord                 bool
	Output                   string
	Pace                     time.Duration
	PaceSet, Lenient, Strict bool
	Quiet, LogSet            bool
	LogLevel                 slog.Level
}
