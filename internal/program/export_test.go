package program

import (
	"io"
	"log/slog"

	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
)

// NewOTLP makes the client for spans that an environment describes, or nil.
func NewOTLP(getenv func(string) string, log io.Writer) (otlptrace.Client, error) {
	o, err := newOTLP(getenv, slog.New(slog.NewTextHandler(log, nil)))
	if o == nil {
		return nil, err
	}
	return o, err
}
