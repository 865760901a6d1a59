package host

import (
	"log/slog"
)

// envFunctions are the functions of "extism:host/env" that have to do with grants.
// Both engines answer them alike.
func envFunctions() []hostFunc {
	return []hostFunc{
		{"http_request", []ValueType{I64, I64}, []ValueType{I64}, grantHTTP, httpRequest},
		{"http_status_code", nil, []ValueType{I32}, "", httpStatusCode},
		{"http_headers", nil, []ValueType{I64}, "", httpHeaders},
		{"get_log_level", nil, []ValueType{I32}, "", getLogLevel},
	}
}

// logLevel is the least level that a guest's message needs to be logged.
func (g *Grants) logLevel() slog.Level {
	if g.LogLevel == nil {
		return slog.LevelDebug
	}
	return g.LogLevel.Level()
}

// getLogLevel tells the guest what is worth logging, in go-sdk's numbers.
func getLogLevel(g guest, stack []uint64) {
	const debug, info, warn, failure, off = 1, 2, 3, 4, 1<<31 - 1
	stack[0] = off
	grants := g.allowed()
	if !grants.Log {
		return
	}
	switch level := grants.logLevel(); {
	case level <= slog.LevelDebug:
		stack[0] = debug
	case level <= slog.LevelInfo:
		stack[0] = info
	case level <= slog.LevelWarn:
		stack[0] = warn
	case level <= slog.LevelError:
		stack[0] = failure
	}
}
