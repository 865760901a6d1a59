package mailboxtrace

import (
	"context"
	"errors"
	"maps"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"

	"github.com/mortise-dev/mortise/mailbox"
)

// scope names the instrumentation.
const scope = "github.com/mortise-dev/mortise/mailbox"

// Tracer is a mailbox.Observer. Make it with [New].
type Tracer struct{ tracer trace.Tracer }

var _ mailbox.Observer = (*Tracer)(nil)

// New makes a Tracer whose spans go to a provider.
func New(provider trace.TracerProvider) (*Tracer, error) {
	if provider == nil {
		return nil, errors.New("mailboxtrace: the provider is nil")
	}
	return &Tracer{tracer: provider.Tracer(scope)}, nil
}

// Inject returns the request with the trace of ctx, in W3C's format. Without a trace it comes back as it is.
func Inject(ctx context.Context, r mailbox.Request) mailbox.Request {
	carrier := propagation.MapCarrier{}
	maps.Copy(carrier, r.Trace)
	propagation.TraceContext{}.Inject(ctx, carrier)
	if len(carrier) > 0 {
		r.Trace = carrier
	}
	return r
}

// Operation implements mailbox.Observer.
func (t *Tracer) Operation(ctx context.Context, o mailbox.Operation) (context.Context, func(string, error)) {
	if !trace.SpanContextFromContext(ctx).IsValid() {
		return ctx, func(string, error) {}
	}
	ctx, span := t.tracer.Start(ctx, "mailbox "+o.Name, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(known(
		attribute.String("mortise.thread.id", o.Thread), attribute.String("mortise.dispatch.id", o.Dispatch),
	)...))
	return ctx, func(r string, err error) {
		span.SetAttributes(attribute.String("mortise.result", r))
		end(span, err)
	}
}

// Execution implements mailbox.Observer.
func (t *Tracer) Execution(ctx context.Context, j *mailbox.Job) (context.Context, func(mailbox.Outcome, error)) {
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier(j.Request.Trace))
	ctx, span := t.tracer.Start(ctx, "mailbox run", trace.WithSpanKind(trace.SpanKindConsumer), trace.WithAttributes(known(
		attribute.String("mortise.thread.id", j.Dispatch.Thread), attribute.String("mortise.dispatch.id", j.Dispatch.ID),
		attribute.String("mortise.run.id", j.Run.ID), attribute.String("mortise.agent.id", j.Run.Agent),
		attribute.String("mortise.instance.id", j.Dispatch.Instance), attribute.String("mortise.owner", j.Dispatch.Owner),
	)...), trace.WithAttributes(attribute.Int("mortise.attempt", j.Attempt)))
	return ctx, func(o mailbox.Outcome, err error) {
		span.SetAttributes(attribute.String("mortise.outcome", string(o)))
		end(span, err)
	}
}

// Settled implements mailbox.Observer: an event of the span under way.
func (*Tracer) Settled(ctx context.Context, d mailbox.Dispatch, _ mailbox.Run) {
	trace.SpanFromContext(ctx).AddEvent("settled", trace.WithAttributes(
		attribute.String("mortise.dispatch.id", d.ID), attribute.String("mortise.outcome", string(d.Outcome())),
	))
}

func end(span trace.Span, err error) {
	if err != nil {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(attribute.String("error.type", string(mailbox.Classify(err))))
	}
	span.End()
}

// known leaves out what is empty.
func known(list ...attribute.KeyValue) []attribute.KeyValue {
	var out []attribute.KeyValue
	for _, a := range list {
		if a.Value.AsString() != "" {
			out = append(out, a)
		}
	}
	return out
}
