package log

import (
	"log/slog"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Grant lets the guest write to the host's logger, what it prints included.
type Grant struct {
	// Level is the least level that is written; messages below it are not counted
	// as dropped. Nil means debug, which is the lowest.
	Level slog.Leveler
}

// Capability implements host.Capability.
func (Grant) Capability() string { return "log" }

// Checked implements host.Capability.
func (l Grant) Checked(string) (engine.Capability, error) { return l, nil }

// Open implements host.Capability.
func (l Grant) Open(*engine.Env) (*engine.Opened, error) {
	granted := &engine.LogGrant{Level: l.Level}
	return &engine.Opened{Log: granted, Functions: []engine.HostFunc{
		engine.Function("get_log_level", func(_ engine.Guest, stack []uint64) { stack[0] = levelNumber(granted.Least()) }),
	}}, nil
}

// levelNumber is a level in go-sdk's numbers.
func levelNumber(level slog.Level) uint64 {
	const debug, info, warn, failure, off = 1, 2, 3, 4, 1<<31 - 1
	switch {
	case level <= slog.LevelDebug:
		return debug
	case level <= slog.LevelInfo:
		return info
	case level <= slog.LevelWarn:
		return warn
	case level <= slog.LevelError:
		return failure
	}
	return off
}
