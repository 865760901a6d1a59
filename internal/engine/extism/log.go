package extism

import (
	"log/slog"
	"strings"

	extism "github.com/extism/go-sdk"
)

// Messages of go-sdk itself, which arrive among those of the guest.
const (
	sdkCalling   = "Calling function : "
	sdkInitError = "Error running reactor _initialize: "
)

// onLog is go-sdk's logger. It may not block, and panics only to leave a call
// that was made to initialise the instance.
func (i *extismInstance) onLog(level extism.LogLevel, message string) {
	g := &i.Log
	if !g.Starting {
		g.Text(slogLevel(level), message)
		return
	}
	if text, ok := strings.CutPrefix(message, sdkInitError); ok && level == extism.LogLevelError {
		g.InitError = text
	}
	if level != extism.LogLevelDebug || message != sdkCalling+g.Export {
		return
	}
	g.Starting = false
	if g.Initialising {
		panic(initDone{})
	}
}

func slogLevel(level extism.LogLevel) slog.Level {
	switch level {
	case extism.LogLevelError:
		return slog.LevelError
	case extism.LogLevelWarn:
		return slog.LevelWarn
	case extism.LogLevelInfo:
		return slog.LevelInfo
	default:
		return slog.LevelDebug
	}
}
