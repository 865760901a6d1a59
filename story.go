package mortise

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
)

// storyCompactions is how many compactions of one execution are logged at level info.
const storyCompactions = 3

// tale is what one execution has come to so far.
type tale struct {
	ids []any

	mu                                             sync.Mutex
	requests, failedRequests, tools, failed, swaps int
	exceeded                                       bool // the window was
	usage                                          abi.Usage
	cost                                           float64
}

type taleKey struct{}

// taleOf returns the tale of the run that a context belongs to, or nil.
func taleOf(ctx context.Context) *tale {
	t, _ := ctx.Value(taleKey{}).(*tale)
	return t
}

// note counts under the lock. A nil tale counts nothing.
func (t *tale) note(count func()) {
	if t == nil {
		return
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	count()
}

// about are the ids of the run, before other attributes.
func (t *tale) about(more ...any) []any {
	if t == nil {
		return more
	}
	return append(append([]any(nil), t.ids...), more...)
}

// story logs how runs go: their start and their end at level info, with what was between them in numbers. It logs nothing that
// a model, a tool or a user wrote.
func story(logger *slog.Logger) Observer {
	return Observer{
		Run: func(ctx context.Context, name string, j *mailbox.Job) (context.Context, func(mailbox.Result, error)) {
			return tellRun(ctx, logger, name, j)
		},
		Inference: func(ctx context.Context, _ llm.Call) (context.Context, func(llm.Call)) {
			return ctx, func(c llm.Call) { tellInference(ctx, logger, &c) }
		},
		Tool: func(ctx context.Context, _ string, call abi.ToolCall) (context.Context, func(abi.ToolResult, error)) {
			start := time.Now()
			return ctx, func(result abi.ToolResult, err error) {
				failed, t := err != nil || result.Status == abi.ToolError, taleOf(ctx)
				t.note(func() { t.tools, t.failed = t.tools+1, t.failed+one(failed) })
				logger.DebugContext(ctx, "tool_executed", t.about("tool", call.Name, "call_id", call.ID, "failed", failed, "took", time.Since(start))...)
			}
		},
		Compaction: func(ctx context.Context, e compaction.Event) { tellCompaction(ctx, logger, &e) },
	}
}

func tellRun(ctx context.Context, logger *slog.Logger, name string, j *mailbox.Job) (context.Context, func(mailbox.Result, error)) {
	t, start := &tale{ids: []any{"run_id", j.Run.ID, "thread_id", j.Dispatch.Thread}}, time.Now()
	ctx = context.WithValue(ctx, taleKey{}, t)
	logger.InfoContext(ctx, "run_started", t.about("agent", name, "dispatch_id", j.Dispatch.ID, "attempt", j.Attempt)...)
	return ctx, func(result mailbox.Result, err error) {
		t.mu.Lock()
		defer t.mu.Unlock()
		sums := t.about(
			"took", time.Since(start), "requests", t.requests, "failed_requests", t.failedRequests, "tools", t.tools, "failed_tools", t.failed,
			"compactions", t.swaps, "prompt_tokens", t.usage.PromptTokens, "completion_tokens", t.usage.CompletionTokens, "cost", t.cost,
		)
		switch {
		case errors.Is(err, mailbox.ErrShutdown), errors.Is(err, mailbox.ErrPaused):
			logger.InfoContext(ctx, "run_interrupted", sums...)
		case err != nil:
			logger.WarnContext(ctx, "run_failed", append(sums, "class", string(mailbox.Classify(err)), "kind", string(llm.Call{Err: err}.Kind()))...)
		case result.Status == mailbox.RunWaiting:
			logger.InfoContext(ctx, "run_waiting", append(sums, "wait", result.Wait)...)
		default:
			kind, _, _ := strings.Cut(result.Termination, ":") // what follows may be a plugin's text
			logger.InfoContext(ctx, "run_ended", append(sums, "termination", kind)...)
		}
	}
}

func tellInference(ctx context.Context, logger *slog.Logger, c *llm.Call) {
	t := taleOf(ctx)
	t.note(func() {
		t.requests, t.failedRequests, t.cost = t.requests+1, t.failedRequests+one(c.Err != nil), t.cost+c.Cost
		llm.AddUsage(&t.usage, &c.Usage)
	})
	logger.DebugContext(ctx, "model_asked", t.about(
		"model", c.Model, "step", c.Step, "kind", string(c.Kind()), "took", c.Took, "first", c.First,
		"prompt_tokens", c.Usage.PromptTokens, "completion_tokens", c.Usage.CompletionTokens, "cost", c.Cost,
	)...)
}

// tellCompaction logs the end of a compaction, the first ones of a run at level info. The reason of a failure is in the thread's
// events: a summarizer may have written it.
func tellCompaction(ctx context.Context, logger *slog.Logger, e *compaction.Event) {
	t, level := taleOf(ctx), slog.LevelInfo
	switch e.Kind {
	case compaction.EventSwapped, compaction.EventRefused, compaction.EventFailed:
		t.note(func() {
			t.swaps++
			if t.swaps > storyCompactions {
				level = slog.LevelDebug
			}
		})
	default:
		level = slog.LevelDebug
	}
	about := t.about()
	if t == nil {
		about = []any{"thread_id", e.Thread}
	}
	if e.Kind == compaction.EventFallback && t != nil {
		first := false
		t.note(func() { first, t.exceeded = !t.exceeded, true })
		if first {
			logger.WarnContext(ctx, "window_exceeded", append(slices.Clone(about), "left_out", "the oldest rounds, until a compaction lands",
				"before_tokens", e.PreTokens, "after_tokens", e.PostTokens)...)
		}
	}
	logger.Log(ctx, level, "compaction", append(about, "kind", string(e.Kind), "policy", e.Policy, "attempt", e.Attempt,
		"before_tokens", e.PreTokens, "after_tokens", e.PostTokens, "took", e.Duration)...)
}

func one(is bool) int {
	if is {
		return 1
	}
	return 0
}
