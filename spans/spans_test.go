package spans_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/mailbox/mailboxtrace"
	"github.com/mortise-dev/mortise/spans"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// canary is in everything that users, models, tools and summarizers write.
const canary = "CANARY-7f3a"

// model calls the tools read and fails for each task, and then answers. It refuses what asks it to.
type model struct{}

func (model) Provider() string { return "anthropic" }

func (model) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	last := r.Messages[len(r.Messages)-1]
	if strings.Contains(last.Text(), "refuse") {
		return nil, &llm.Error{Kind: llm.KindContentFiltered, Message: canary}
	}
	m := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("done " + canary)}}
	stop := abi.StopEndTurn
	if last.Role == abi.RoleUser {
		id := fmt.Sprint("call-", len(r.Messages))
		m.ToolCalls = []abi.ToolCall{{ID: id + "-1", Name: "read", Arguments: map[string]any{"path": canary}}, {ID: id + "-2", Name: "fail"}}
		stop = abi.StopToolUse
	}
	return &abi.Response{
		Message: m, Model: "sonnet-2026", StopReason: stop, Usage: &abi.Usage{PromptTokens: 100, CompletionTokens: 7, CacheReadTokens: 90},
	}, nil
}

type tools struct{}

func (tools) Tools() []abi.Tool { return []abi.Tool{{Name: "read"}, {Name: "fail"}} }

func (tools) CallTool(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	if call.Name == "fail" {
		return abi.ToolResult{}, errors.New("failed: " + canary)
	}
	return abi.ToolResult{Message: canary}, nil
}

type summarizer struct{}

func (summarizer) Summarize(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
	return &abi.Summary{Text: "SUMMARY " + canary}, nil
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// world is a runtime whose spans are kept.
type world struct {
	runtime  *mortise.Runtime
	provider *sdktrace.TracerProvider
	exported *tracetest.InMemoryExporter
	log      bytes.Buffer
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{exported: tracetest.NewInMemoryExporter()}
	w.provider = sdktrace.NewTracerProvider(sdktrace.WithSyncer(w.exported))
	queue, err := mailboxtrace.New(w.provider)
	must(t, err)
	tracer, err := spans.New(w.provider)
	must(t, err)
	w.runtime, err = mortise.New(t.Context(), mortise.Config{
		Agents:    map[string]mortise.Agent{"reader": {Model: model{}, ModelName: "sonnet", Tools: tools{}}},
		Observers: []mortise.Observer{tracer.Observer()}, Mailbox: mailbox.Config{Observers: []mailbox.Observer{queue}},
		Compaction: &compaction.Config{
			Policy: compaction.Policy{
				WindowTokens: 100_000, ThresholdTokens: 1_000, KeepRecentTokens: 1, KeepRecentMessages: 1,
				MinRangeTokens: 1_024, SummaryTokens: 500, BreakerFailures: -1,
			},
			Summarizer: summarizer{}, PolicyName: "short", Admitter: compaction.Rules{},
		},
		Logger: slog.New(spans.Handler(slog.NewTextHandler(&w.log, nil))),
	})
	must(t, err)
	must(t, w.runtime.Start(t.Context()))
	return w
}

// ask has a text answered in a trace of its own, and returns that.
func (w *world) ask(t *testing.T, text string) trace.SpanContext {
	t.Helper()
	ctx, root := w.provider.Tracer("test").Start(t.Context(), "request")
	defer root.End()
	input, err := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text + canary)}})
	must(t, err)
	sub, err := w.runtime.Mailbox().SubmitBackground(ctx, mailboxtrace.Inject(ctx, mailbox.Request{Thread: "t", Messages: input}))
	must(t, err)
	_, err = w.runtime.Mailbox().Await(t.Context(), sub.Dispatch)
	must(t, err)
	return root.SpanContext()
}

// tree renders the spans of a trace below a parent, children in the order of their ends, without those of the store.
func (w *world) tree(of trace.SpanContext, indent string) (out []string) {
	for _, s := range w.exported.GetSpans() {
		if s.SpanContext.TraceID() != of.TraceID() || s.Parent.SpanID() != of.SpanID() || strings.HasPrefix(s.Name, "mailbox ") && s.Name != "mailbox run" {
			continue
		}
		out = append(out, indent+s.Name+" "+s.SpanKind.String())
		out = append(out, w.tree(s.SpanContext, indent+"  ")...)
	}
	return out
}

func (w *world) find(of trace.SpanContext, name string) map[string]attribute.Value {
	for _, s := range w.exported.GetSpans() {
		if s.SpanContext.TraceID() == of.TraceID() && s.Name == name {
			out := map[string]attribute.Value{}
			for _, a := range s.Attributes {
				out[string(a.Key)] = a.Value
			}
			out["status"] = attribute.StringValue(s.Status.Code.String() + s.Status.Description)
			return out
		}
	}
	return nil
}

// TestTree: inferences, tools and compactions are inside of their run's span, which is inside of the mailbox's, in the
// trace of the request.
func TestTree(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t)
		defer w.runtime.Close(context.Background())
		filler := strings.Repeat("filler ", 800)
		w.ask(t, filler)
		root := w.ask(t, filler)
		time.Sleep(time.Minute) // the compaction ends, and the next run swaps it in
		w.ask(t, "and now?")
		want := []string{
			"mailbox run consumer",
			"  invoke_agent reader internal",
			"    chat sonnet client", "    execute_tool read internal", "    execute_tool fail internal", "    chat sonnet client", "    compaction internal",
		}
		got := w.tree(root, "")
		slices.Sort(got[2:])
		slices.Sort(want[2:])
		if !slices.Equal(got, want) {
			t.Errorf("the spans are\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		for name, attributes := range map[string]map[string]string{
			"invoke_agent reader": {
				"gen_ai.operation.name": "invoke_agent", "gen_ai.agent.name": "reader", "gen_ai.conversation.id": "t", "gen_ai.provider.name": "anthropic",
				"gen_ai.request.model": "sonnet", "gen_ai.usage.input_tokens": "200", "gen_ai.usage.output_tokens": "14", "status": codes.Unset.String(),
			},
			"chat sonnet": {
				"gen_ai.operation.name": "chat", "gen_ai.provider.name": "anthropic", "gen_ai.request.model": "sonnet", "gen_ai.response.model": "sonnet-2026",
				"gen_ai.usage.input_tokens": "100", "gen_ai.usage.output_tokens": "7", "gen_ai.usage.cache_read.input_tokens": "90", "gen_ai.agent.name": "reader",
				"gen_ai.conversation.id": "t", "gen_ai.response.finish_reasons": `["tool_use"]`, "status": codes.Unset.String(),
			},
			"execute_tool read": {
				"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "read", "gen_ai.agent.name": "reader", "status": codes.Unset.String(),
			},
			"execute_tool fail": {"error.type": "tool_error", "status": codes.Error.String()},
			"compaction": {
				"gen_ai.conversation.id": "t", "mortise.compaction.policy": "short", "mortise.compaction.result": "swapped", "status": codes.Unset.String(),
			},
		} {
			has := w.find(root, name)
			for key, value := range attributes {
				if got := has[key].String(); got != value {
					t.Errorf("%s: %s is %q, want %q", name, key, got, value)
				}
			}
		}
		if id := w.find(root, "execute_tool read")["gen_ai.tool.call.id"].AsString(); !strings.HasPrefix(id, "call-") {
			t.Errorf("the id of the call is %q", id)
		}
		refused := w.ask(t, "refuse")
		for _, name := range []string{"invoke_agent reader", "chat sonnet"} {
			if has := w.find(refused, name); has["error.type"].AsString() != "content_filtered" || has["status"].AsString() != codes.Error.String() {
				t.Errorf("%s of a run that failed has %v", name, has)
			}
		}
		must(t, w.runtime.Close(t.Context()))
		w.silent(t)
		if !strings.Contains(w.log.String(), "trace_id="+refused.TraceID().String()) {
			t.Errorf("the log has no trace: %s", w.log.String())
		}
	})
}

// silent checks that nothing which was written in the conversation is in a span or in the log.
func (w *world) silent(t *testing.T) {
	t.Helper()
	for _, s := range w.exported.GetSpans() {
		text := s.Name + s.Status.Description
		for _, a := range s.Attributes {
			text += a.Value.String()
		}
		for _, e := range s.Events {
			text += fmt.Sprint(e)
		}
		if strings.Contains(text, canary) || strings.Contains(text, "filler") {
			t.Errorf("the span %s quotes the conversation: %s", s.Name, text)
		}
	}
	if strings.Contains(w.log.String(), canary) {
		t.Errorf("the log quotes the conversation: %s", w.log.String())
	}
}

// TestCompactionsThatEndElsewhere: spans of compactions whose end comes in another process do not pile up.
func TestCompactionsThatEndElsewhere(t *testing.T) {
	t.Parallel()
	exported := tracetest.NewInMemoryExporter()
	tracer, err := spans.New(sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported)))
	must(t, err)
	const many, most = 3000, 1000
	for i := range many {
		tracer.Observer().Compaction(t.Context(), compaction.Event{Kind: compaction.EventStarted, AttemptID: fmt.Sprint(i)})
	}
	if n := len(exported.GetSpans()); n != many-most {
		t.Errorf("%d of %d spans ended, want %d", n, many, many-most)
	}
}

func TestNew_refuses(t *testing.T) {
	t.Parallel()
	if _, err := spans.New(nil); err == nil {
		t.Error("a tracer without a provider")
	}
}

var _ agent.Tools = tools{}

// Spans of a runtime go to any OpenTelemetry provider.
func ExampleNew() {
	ctx, exported := context.Background(), tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(exported))
	tracer, err := spans.New(provider)
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := mortise.New(ctx, mortise.Config{
		Agents:    map[string]mortise.Agent{"reader": {Model: model{}, ModelName: "sonnet", Tools: tools{}}},
		Observers: []mortise.Observer{tracer.Observer()},
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer r.Close(ctx)
	if err := r.Start(ctx); err != nil {
		fmt.Println(err)
		return
	}
	input, _ := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("Read it.")}})
	sub, err := r.Mailbox().SubmitBackground(ctx, mailbox.Request{Messages: input})
	if err != nil {
		fmt.Println(err)
		return
	}
	_, _ = r.Mailbox().Await(ctx, sub.Dispatch)
	for _, s := range exported.GetSpans() {
		fmt.Println(s.Name)
	}
	// Output:
	// chat sonnet
	// execute_tool read
	// execute_tool fail
	// chat sonnet
	// invoke_agent reader
}
