package host

import (
	"context"
	"log/slog"
	"strings"

	extism "github.com/extism/go-sdk"
)

// Messages of go-sdk itself, which arrive among those of the guest.
const (
	sdkCalling   = "Calling function : "
	sdkInitError = "Error running reactor _initialize: "
)

// guestLog passes log messages of one instance on, within limits.
type guestLog struct {
	logger  *slog.Logger
	module  string
	granted bool
	level   slog.Level
	limit   int

	// Of the call in progress. write is nil between calls.
	write   func(level slog.Level, text string)
	export  string
	used    int
	dropped int64
	// printed counts lines of standard output and error without the grant. stream is the one that the
	// message in progress was printed to, if it was.
	printed int64
	stream  string
	// starting is set until go-sdk has said that it calls the function. What is
	// logged before comes from go-sdk, or from the guest's initialisation.
	starting bool
	// initialising is set while an instance is made; initError is what go-sdk
	// logged instead of returning it.
	initialising bool
	initError    string
}

func (g *guestLog) begin(ctx context.Context, export string) {
	g.export, g.used, g.dropped, g.printed, g.starting, g.initError = export, 0, 0, 0, true, ""
	g.write = func(level slog.Level, text string) {
		if g.stream != "" {
			g.logger.Log(ctx, level, "guest output", "module", g.module, "export", export, "stream", g.stream, "text", text)
			return
		}
		g.logger.Log(ctx, level, "guest log", "module", g.module, "export", export, "text", text)
	}
	if !g.granted {
		g.write = nil
	}
}

func (g *guestLog) end() {
	if g.dropped > 0 && g.write != nil {
		g.write(slog.LevelWarn, "messages above the limit were dropped")
	}
	g.write = nil
}

// onLog is go-sdk's logger. It may not block, and panics only to leave a call
// that was made to initialise the instance.
func (i *extismInstance) onLog(level extism.LogLevel, message string) {
	g := &i.log
	if !g.starting {
		g.pass(level, message)
		return
	}
	if text, ok := strings.CutPrefix(message, sdkInitError); ok && level == extism.LogLevelError {
		g.initError = text
	}
	if level != extism.LogLevelDebug || message != sdkCalling+g.export {
		return
	}
	g.starting = false
	if g.initialising {
		panic(initDone{})
	}
}

// beginNative starts a call on an engine that does not log by itself.
func (g *guestLog) beginNative(ctx context.Context, export string) {
	g.begin(ctx, export)
	g.starting = false
}

// reset forgets what the call before has used.
func (g *guestLog) reset() { g.used, g.dropped, g.printed, g.starting = 0, 0, 0, false }

// pass writes a message of the guest.
func (g *guestLog) pass(level extism.LogLevel, message string) { g.text(slogLevel(level), message) }

// text writes a message, or drops and counts it.
func (g *guestLog) text(level slog.Level, message string) {
	if g.write != nil && level < g.level {
		return
	}
	if g.write == nil || g.used+logRecord+len(message) > g.limit { // escapes make it no shorter
		g.dropped++
		return
	}
	shown := clean(message, g.limit)
	if g.used+logRecord+len(shown) > g.limit {
		g.dropped++
		return
	}
	g.used += logRecord + len(shown)
	g.write(level, shown)
}

// logRecord is what a message counts beside its text. A log takes more for each line
// than the text, so a flood of empty ones is one too.
const logRecord = 64

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

// head keeps the first bytes that are written to it and swallows the rest.
type head struct {
	buf   []byte
	limit int
}

// Write implements io.Writer. It never fails.
func (h *head) Write(p []byte) (int, error) {
	h.buf = append(h.buf, p[:min(len(p), h.limit-len(h.buf))]...)
	return len(p), nil
}

func (h *head) String() string { return strings.TrimSpace(string(h.buf)) }

func (h *head) empty() bool { return len(h.buf) == 0 }

func (h *head) reset() { h.buf = h.buf[:0] }
