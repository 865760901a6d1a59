package engine

import (
	"context"
	"log/slog"
	"strings"
)

// GuestLog passes log messages of one instance on, within limits.
type GuestLog struct {
	Logger  *slog.Logger
	Module  string
	Granted bool
	Level   slog.Level
	Limit   int

	// Of the call in progress. write is nil between calls.
	write   func(level slog.Level, text string)
	Export  string
	used    int
	Dropped int64
	// Printed counts lines of standard output and error without the grant. stream is the one that the
	// message in progress was printed to, if it was.
	Printed int64
	stream  string
	// Starting is set until go-sdk has logged its call of the function. What is
	// logged before comes from go-sdk, or from the guest's initialisation.
	Starting bool
	// Initialising is set while an instance is made; initError is what go-sdk
	// logged instead of returning it.
	Initialising bool
	InitError    string
}

// Begin starts the log of a call.
func (g *GuestLog) Begin(ctx context.Context, export string) {
	g.Export, g.used, g.Dropped, g.Printed, g.Starting, g.InitError = export, 0, 0, 0, true, ""
	g.write = func(level slog.Level, text string) {
		if g.stream != "" {
			g.Logger.Log(ctx, level, "guest output", "module", g.Module, "export", export, "stream", g.stream, "text", text)
			return
		}
		g.Logger.Log(ctx, level, "guest log", "module", g.Module, "export", export, "text", text)
	}
	if !g.Granted {
		g.write = nil
	}
}

// End ends the log of a call.
func (g *GuestLog) End() {
	if g.Dropped > 0 && g.write != nil {
		g.write(slog.LevelWarn, "messages above the limit were dropped")
	}
	g.write = nil
}

// BeginNative starts a call on an engine that does not log by itself.
func (g *GuestLog) BeginNative(ctx context.Context, export string) {
	g.Begin(ctx, export)
	g.Starting = false
}

// Reset forgets what the call before has used.
func (g *GuestLog) Reset() { g.used, g.Dropped, g.Printed, g.Starting = 0, 0, 0, false }

// Text writes a message, or drops and counts it.
func (g *GuestLog) Text(level slog.Level, message string) {
	if g.write != nil && level < g.Level {
		return
	}
	if g.write == nil || g.used+logRecord+len(message) > g.Limit { // escapes make it no shorter
		g.Dropped++
		return
	}
	shown := Clean(message, g.Limit)
	if g.used+logRecord+len(shown) > g.Limit {
		g.Dropped++
		return
	}
	g.used += logRecord + len(shown)
	g.write(level, shown)
}

// logRecord is what a message counts besides its text. A log takes more for each line
// than the text, so a flood of empty ones is one too.
const logRecord = 64

// Head keeps the first bytes that are written to it and swallows the rest.
type Head struct {
	buf   []byte
	Limit int
}

// Write implements io.Writer. It never fails.
func (h *Head) Write(p []byte) (int, error) {
	h.buf = append(h.buf, p[:min(len(p), h.Limit-len(h.buf))]...)
	return len(p), nil
}

func (h *Head) String() string { return strings.TrimSpace(string(h.buf)) }

// Empty reports whether nothing was written.
func (h *Head) Empty() bool { return len(h.buf) == 0 }

// Reset forgets what was written.
func (h *Head) Reset() { h.buf = h.buf[:0] }
