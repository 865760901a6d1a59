package mailboxtrace_test

import (
	"context"
	"fmt"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/mailboxtrace"
	"github.com/mortise-dev/mortise/store/memstore"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// runtime fails as its message asks, and remembers its trace.
type runtime struct{ seen trace.SpanContext }

func (r *runtime) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	r.seen = trace.SpanContextFromContext(ctx)
	if string(j.Request.Messages[0].Data) == "wrong" {
		return mailbox.Result{}, mailbox.ErrPermanent
	}
	return mailbox.Result{}, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestTraceGoesAlong(t *testing.T) {
	t.Parallel()
	recorder := tracetest.NewSpanRecorder()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(recorder))
	tracer, err := mailboxtrace.New(provider)
	must(t, err)
	store, run := memstore.New(), &runtime{}
	submitter, err := mailbox.New(t.Context(), mailbox.Config{Store: store, Runtime: &runtime{}, Observers: []mailbox.Observer{tracer}})
	must(t, err)
	worker, err := mailbox.New(t.Context(), mailbox.Config{Store: store, Runtime: run, Observers: []mailbox.Observer{tracer}, Owner: "worker"})
	must(t, err)
	ctx, root := provider.Tracer("test").Start(t.Context(), "request")
	r := mailbox.Request{Thread: "t", Key: "k", Messages: []mailbox.Input{{Data: []byte("wrong")}}}
	sub, err := submitter.SubmitBackground(ctx, mailboxtrace.Inject(ctx, r))
	must(t, err)
	root.End()
	// The same request from elsewhere is the same, although it is in another trace.
	if again, err := submitter.SubmitBackground(t.Context(), r); err != nil || again.Dispatch != sub.Dispatch {
		t.Errorf("again: %+v, %v", again, err)
	}
	must(t, worker.Start(t.Context()))
	_, err = worker.Await(t.Context(), sub.Dispatch)
	must(t, err)
	must(t, worker.Close(t.Context()))
	must(t, submitter.Close(t.Context()))
	names := map[string]sdktrace.ReadOnlySpan{}
	for _, s := range recorder.Ended() {
		if s.SpanContext().TraceID() != root.SpanContext().TraceID() {
			t.Errorf("span %q is in no trace of the request", s.Name())
		}
		names[s.Name()] = s
	}
	execution := names["mailbox run"]
	if execution == nil || names["mailbox enqueue"] == nil {
		t.Fatalf("spans: %v", names)
	}
	if execution.Parent().SpanID() != root.SpanContext().SpanID() || execution.Status().Code != codes.Error || execution.SpanContext().SpanID() != run.seen.SpanID() {
		t.Errorf("span of the run: parent %v, status %+v", execution.Parent().SpanID(), execution.Status())
	}
	attributes := map[string]string{}
	for _, a := range execution.Attributes() {
		attributes[string(a.Key)] = a.Value.String()
	}
	for key, want := range map[string]string{
		"mortise.thread.id": "t", "mortise.dispatch.id": sub.Dispatch, "mortise.run.id": sub.Run, "mortise.owner": "worker",
		"mortise.attempt": "1", "mortise.outcome": "permanent_error",
	} {
		if attributes[key] != want {
			t.Errorf("%s is %q, want %q", key, attributes[key], want)
		}
	}
}

func TestNew(t *testing.T) {
	t.Parallel()
	if _, err := mailboxtrace.New(nil); err == nil {
		t.Error("a tracer without a provider")
	}
	r := mailboxtrace.Inject(t.Context(), mailbox.Request{})
	if r.Trace != nil {
		t.Errorf("a request without a trace got %v", r.Trace)
	}
}

// A request takes its trace along.
func ExampleInject() {
	ctx, span := sdktrace.NewTracerProvider().Tracer("example").Start(context.Background(), "request")
	defer span.End()
	r := mailboxtrace.Inject(ctx, mailbox.Request{Messages: []mailbox.Input{{Data: []byte("hello")}}})
	fmt.Println(len(r.Trace["traceparent"]))
	// Output: 55
}
