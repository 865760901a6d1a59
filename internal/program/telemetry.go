package program

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxmetrics"
	"github.com/mortise-dev/mortise/mailbox/mailboxtrace"
	"github.com/mortise-dev/mortise/metrics"
	"github.com/mortise-dev/mortise/spans"
)

// telemetry is what mortise serve makes of its runs for operators: metrics, and spans if the environment names a collector.
type telemetry struct {
	registry *prometheus.Registry
	traces   *sdktrace.TracerProvider // nil exports nothing
	runs     []mortise.Observer
	mailbox  []mailbox.Observer
}

// openTelemetry makes the metrics of a program, which it reads when they are collected, and its spans.
func (p *Program) openTelemetry(ctx context.Context) error {
	p.telemetry.registry = prometheus.NewRegistry()
	queue, err := mailboxmetrics.New(mailboxmetrics.Config{Registry: p.telemetry.registry, Store: p.store}) //nolint:contextcheck // it only makes collectors
	if err != nil {
		return err
	}
	m, err := metrics.New(metrics.Config{
		Registry: p.telemetry.registry, Agents: slices.Collect(maps.Keys(p.Cfg.Agents)), Models: p.Cfg.ModelNames(), Values: 2 * metrics.DefaultValues,
		Modules: func() map[string]host.Stats { return p.now.Load().parts.stats() },
		Tasks:   func() background.Stats { return p.Runtime.Tasks().Stats() },
	})
	if err != nil {
		return err
	}
	if err := p.openTraces(ctx, os.Getenv); err != nil {
		return err
	}
	p.telemetry.mailbox = append(p.telemetry.mailbox, queue)
	p.telemetry.runs = append(p.telemetry.runs, m.Observer())
	p.Cfg.observe = p.telemetry.inference
	return nil
}

// inference observes requests to models that modules make.
func (t *telemetry) inference(ctx context.Context, c llm.Call) (context.Context, func(llm.Call)) {
	var ends []func(llm.Call)
	for _, o := range t.runs {
		var end func(llm.Call)
		ctx, end = o.Inference(ctx, c) //nolint:fatcontext // each observer adds its own
		ends = append(ends, end)
	}
	return ctx, func(c llm.Call) {
		for _, end := range slices.Backward(ends) {
			end(c)
		}
	}
}

// openTraces exports spans if the environment names a collector, by the variables that OpenTelemetry has for that.
func (p *Program) openTraces(ctx context.Context, getenv func(string) string) error {
	client, err := newOTLP(getenv, p.logger)
	if err != nil || client == nil {
		return exit.With(exit.Config, err)
	}
	exporter, err := otlptrace.New(ctx, client)
	if err != nil {
		return err
	}
	about, err := resource.New(ctx,
		resource.WithAttributes(semconv.ServiceName("mortise"), semconv.ServiceVersion(Version())), resource.WithTelemetrySDK(), resource.WithFromEnv())
	if err != nil {
		return fmt.Errorf("OTEL_RESOURCE_ATTRIBUTES: %w", err)
	}
	p.telemetry.traces = sdktrace.NewTracerProvider(sdktrace.WithBatcher(exporter), sdktrace.WithResource(about))
	queue, err := mailboxtrace.New(p.telemetry.traces)
	if err != nil {
		return err
	}
	tracer, err := spans.New(p.telemetry.traces)
	if err != nil {
		return err
	}
	p.telemetry.mailbox = append(p.telemetry.mailbox, queue)
	p.telemetry.runs = append(p.telemetry.runs, tracer.Observer())
	p.logger.InfoContext(ctx, "spans are exported", "to", config.Shown(client.url))
	return nil
}

// stats are the counters of all modules, by name. A policy has the name of its place in the config.
func (p *Parts) stats() map[string]host.Stats {
	out := p.Set.Stats()
	for _, m := range p.modules {
		name := m.Name()
		if _, taken := out[name]; taken {
			name = "compaction." + name
		}
		out[name] = m.Stats()
	}
	return out
}

// Logger is the log of a command that serves. Inside of a span it has the ids of the trace.
func Logger(out io.Writer, level slog.Level) *slog.Logger {
	return slog.New(spans.Handler(slog.NewTextHandler(out, &slog.HandlerOptions{Level: level})))
}
