package spans

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.40.0" // the last one that has gen_ai
	"go.opentelemetry.io/otel/trace"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
)

// scope names the instrumentation.
const scope = "github.com/mortise-dev/mortise"

// Tracer makes spans of what its [Tracer.Observer] receives. Make it with [New].
type Tracer struct {
	tracer trace.Tracer

	mu sync.Mutex
	// open are the spans of compactions under way, by attempt, at most maxOpen.
	open map[string]trace.Span
}

// maxOpen bounds the spans of compactions that are open. The end of a compaction may come in another process.
const maxOpen = 1000

// New makes a Tracer whose spans go to a provider, which the caller shuts down after the runtime.
func New(provider trace.TracerProvider) (*Tracer, error) {
	if provider == nil {
		return nil, errors.New("spans: the provider is nil")
	}
	return &Tracer{tracer: provider.Tracer(scope), open: make(map[string]trace.Span)}, nil
}

// Observer traces; it is for mortise.Config.Observers. Put it before others whose work belongs inside of its spans.
func (t *Tracer) Observer() mortise.Observer {
	return mortise.Observer{Run: t.run, Inference: t.Inference, Tool: t.tool, Compaction: t.compaction}
}

// sum is what the requests of one execution come to.
type sum struct {
	mu              sync.Mutex
	provider, model string
	usage           abi.Usage
}

type sumKey struct{}

// add counts a request of the run that a context belongs to.
func add(ctx context.Context, c *llm.Call) {
	s, ok := ctx.Value(sumKey{}).(*sum)
	if !ok {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.provider, s.model = provider(c.Provider), c.Model
	llm.AddUsage(&s.usage, &c.Usage)
}

// attributes are those of the request that came last, with the usage of all.
func (s *sum) attributes() []attribute.KeyValue {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.provider == "" {
		return []attribute.KeyValue{semconv.GenAIProviderNameKey.String(provider(""))}
	}
	return append(used(s.usage), semconv.GenAIProviderNameKey.String(s.provider), semconv.GenAIRequestModel(s.model))
}

// used are the attributes of a usage.
func used(u abi.Usage) []attribute.KeyValue {
	if u == (abi.Usage{}) {
		return nil
	}
	return []attribute.KeyValue{
		semconv.GenAIUsageInputTokens(int(u.PromptTokens)), semconv.GenAIUsageOutputTokens(int(u.CompletionTokens)),
		semconv.GenAIUsageCacheReadInputTokens(int(u.CacheReadTokens)), semconv.GenAIUsageCacheCreationInputTokens(int(u.CacheCreationTokens)),
	}
}

func (t *Tracer) run(ctx context.Context, name string, j *mailbox.Job) (context.Context, func(mailbox.Result, error)) {
	ctx, span := t.tracer.Start(ctx, "invoke_agent "+name, trace.WithAttributes(
		semconv.GenAIOperationNameInvokeAgent, semconv.GenAIAgentName(name), semconv.GenAIConversationID(j.Dispatch.Thread),
		attribute.String("mortise.run.id", j.Run.ID),
	))
	s := &sum{}
	return context.WithValue(ctx, sumKey{}, s), func(_ mailbox.Result, err error) {
		span.SetAttributes(s.attributes()...)
		end(span, classOf(err))
	}
}

// Inference is an llm.Observe. It is part of [Tracer.Observer]; use it for models that are asked by others than agents.
func (t *Tracer) Inference(ctx context.Context, c llm.Call) (context.Context, func(llm.Call)) {
	about := []attribute.KeyValue{semconv.GenAIOperationNameChat, semconv.GenAIRequestModel(c.Model), semconv.GenAIProviderNameKey.String(provider(c.Provider))}
	if c.ThreadID != "" {
		about = append(about, semconv.GenAIConversationID(c.ThreadID))
	}
	if c.AgentID != "" {
		about = append(about, semconv.GenAIAgentName(c.AgentID))
	}
	ctx, span := t.tracer.Start(ctx, "chat "+c.Model, trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(about...))
	return ctx, func(c llm.Call) {
		if c.ResponseModel != "" {
			span.SetAttributes(semconv.GenAIResponseModel(c.ResponseModel))
		}
		if c.Stop != "" {
			span.SetAttributes(semconv.GenAIResponseFinishReasons(string(c.Stop)))
		}
		span.SetAttributes(used(c.Usage)...)
		add(ctx, &c)
		end(span, string(c.Kind()))
	}
}

// provider is a value that the conventions require.
func provider(name string) string {
	if name == "" {
		return "_OTHER"
	}
	return name
}

func (t *Tracer) tool(ctx context.Context, name string, call abi.ToolCall) (context.Context, func(abi.ToolResult, error)) {
	ctx, span := t.tracer.Start(ctx, "execute_tool "+call.Name, trace.WithAttributes(
		semconv.GenAIOperationNameExecuteTool, semconv.GenAIToolName(call.Name), semconv.GenAIToolCallID(call.ID), semconv.GenAIAgentName(name),
	))
	return ctx, func(r abi.ToolResult, err error) {
		class := ""
		if err != nil || r.Status == abi.ToolError {
			class = "tool_error"
		}
		end(span, class)
	}
}

// compaction makes one span of a compaction. It begins in the run that started it.
func (t *Tracer) compaction(ctx context.Context, e compaction.Event) {
	switch e.Kind {
	case compaction.EventStarted:
		_, span := t.tracer.Start(ctx, "compaction", trace.WithTimestamp(e.At), trace.WithAttributes(
			semconv.GenAIConversationID(e.Thread), attribute.String("mortise.compaction.policy", e.Policy),
			attribute.Int64("mortise.compaction.tokens", e.PreTokens), attribute.Int("mortise.compaction.messages", e.Messages),
		))
		t.mu.Lock()
		defer t.mu.Unlock()
		for attempt, other := range t.open {
			if len(t.open) < maxOpen {
				break
			}
			other.End()
			delete(t.open, attempt)
		}
		t.open[e.AttemptID] = span
	case compaction.EventSwapped, compaction.EventRefused, compaction.EventFailed, compaction.EventStale:
		t.mu.Lock()
		span := t.open[e.AttemptID]
		delete(t.open, e.AttemptID)
		t.mu.Unlock()
		if span == nil {
			return
		}
		span.SetAttributes(attribute.String("mortise.compaction.result", string(e.Kind)))
		if e.Kind == compaction.EventSwapped {
			span.SetAttributes(attribute.Int64("mortise.compaction.before_tokens", e.PreTokens), attribute.Int64("mortise.compaction.after_tokens", e.PostTokens))
			end(span, "")
			return
		}
		end(span, string(e.Kind))
	default: // belongs to no compaction under way
	}
}

// classOf is the kind of an inference that failed, or whether another attempt of the run may help.
func classOf(err error) string {
	var failure *llm.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &failure):
		return string(llm.Call{Err: failure}.Kind())
	default:
		return string(mailbox.Classify(err))
	}
}

// end ends a span, as failed if there is a class. The text of an error may quote a prompt, so it stays out.
func end(span trace.Span, class string) {
	if class != "" {
		span.SetStatus(codes.Error, "")
		span.SetAttributes(semconv.ErrorTypeKey.String(class))
	}
	span.End()
}
