package mortise_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/phases"
)

// secret is in everything that users, models, tools and plugins write.
const secret = "s3cr3t-0b1e"

// caller is a model that makes so many tool calls at once as the user says, in the last word, and then answers.
type caller struct{}

func (caller) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	last := r.Messages[len(r.Messages)-1]
	out := &abi.Response{
		Message: abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("done " + secret)}}, Usage: &abi.Usage{PromptTokens: 50, CompletionTokens: 5},
	}
	words := strings.Fields(last.Text())
	n := 0
	if last.Role == abi.RoleUser {
		_, _ = fmt.Sscan(words[len(words)-1], &n)
	}
	if n < 0 {
		return nil, &llm.Error{Kind: llm.KindInvalidRequest, Message: secret}
	}
	for i := range n {
		out.Message.ToolCalls = append(out.Message.ToolCalls, abi.ToolCall{ID: fmt.Sprintf("c%d-%d", len(r.Messages), i), Name: "look", Arguments: map[string]any{"at": secret}})
	}
	return out, nil
}

// buffer is a log that may be read while it is written.
type buffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (b *buffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.text.Write(p)
}

// take returns what was written since it was last called.
func (b *buffer) take() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.text.Reset()
	return b.text.String()
}

// looks is a tool whose every third call fails.
type looks struct{}

func (looks) Tools() []abi.Tool { return []abi.Tool{{Name: "look"}} }

func (looks) CallTool(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	if strings.HasSuffix(call.ID, "-2") {
		return abi.ToolResult{}, errors.New(secret)
	}
	return abi.ToolResult{Message: secret}, nil
}

// busy has a compaction of each thread swapped in as soon as it may.
func busy() *compaction.Config {
	return &compaction.Config{
		Policy: compaction.Policy{
			WindowTokens: 100_000, ThresholdTokens: 1_000, KeepRecentTokens: 1, KeepRecentMessages: 1, MinRangeTokens: 1_024, SummaryTokens: 500, BreakerFailures: -1, MinSurvival: -1,
		},
		Summarizer: late{}, Admitter: compaction.Rules{},
	}
}

// TestStory: a run is logged at level info in a few lines, however many tools it calls, and no line quotes it.
func TestStory(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log buffer
		r, err := mortise.New(t.Context(), mortise.Config{
			Agents: map[string]mortise.Agent{"a": {
				Model: caller{}, ModelName: "m", Tools: looks{}, Cost: func(string, abi.Usage) float64 { return 0.25 },
			}},
			Compaction: busy(), Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		must(t, err)
		must(t, r.Start(t.Context()))
		defer r.Close(context.Background())
		for calls, want := range map[int][]string{
			3:  {"requests=2 failed_requests=0 tools=3 failed_tools=1", "prompt_tokens=100 completion_tokens=10 cost=0.5 termination=natural"},
			20: {"requests=2 failed_requests=0 tools=20 failed_tools=1", "prompt_tokens=100 completion_tokens=10 cost=0.5 termination=natural"},
			-1: {"level=WARN msg=run_failed", "requests=1 failed_requests=1 tools=0", "class=permanent_error kind=invalid_request"},
		} {
			log.take()
			d := ask(t, r, fmt.Sprintf("%s %s %d", strings.Repeat("filler ", 800), secret, calls))
			time.Sleep(time.Minute)
			synctest.Wait()
			text, lines := log.take(), 0
			for line := range strings.Lines(text) {
				if strings.Contains(line, "run_id="+d.RunID) && strings.Contains(line, "thread_id=t") {
					lines++
				}
			}
			if lines < 2 || lines > 10 || strings.Count(text, "\n") > 10 {
				t.Errorf("a run with %d tool calls has %d lines:\n%s", calls, lines, text)
			}
			for _, w := range append(want, "msg=run_started", "agent=a") {
				if !strings.Contains(text, w) {
					t.Errorf("a run with %d tool calls lacks %q:\n%s", calls, w, text)
				}
			}
			if strings.Contains(text, secret) || strings.Contains(text, "filler") {
				t.Errorf("the log quotes the conversation:\n%s", text)
			}
		}
	})
}

// broken is a summarizer that fails.
type broken struct{}

func (broken) Summarize(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
	return nil, errors.New("broken")
}

// TestStory_window: a run whose oldest rounds are left out warns of it, once.
func TestStory_window(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log buffer
		r, err := mortise.New(t.Context(), mortise.Config{
			Agents: map[string]mortise.Agent{"a": {Model: caller{}, Tools: looks{}}},
			Compaction: &compaction.Config{
				Policy: compaction.Policy{
					WindowTokens: 4_000, ThresholdTokens: 2_500, ReserveTokens: 1_000, KeepRecentTokens: 500, KeepRecentMessages: 1, SummaryTokens: 200, BreakerFailures: -1, MinSurvival: -1,
				},
				Summarizer: broken{},
			},
			Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		must(t, err)
		must(t, r.Start(t.Context()))
		defer r.Close(context.Background())
		warned := ""
		for range 16 {
			log.take()
			ask(t, r, strings.Repeat("filler ", 800)+"3")
			time.Sleep(time.Minute)
			synctest.Wait()
			text := log.take()
			switch strings.Count(text, "level=WARN msg=window_exceeded run_id=") {
			case 0:
			case 1:
				warned = text
			default:
				t.Errorf("a run warns more than once:\n%s", text)
			}
		}
		if !strings.Contains(warned, "before_tokens=") {
			t.Error("the log does not warn")
		}
	})
}

// TestObservers: each receives all that happens, inside of the one before it, and a tool that panics has an end, too.
func TestObservers(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var order []string
		seen := map[string]int{}
		saw := func(what string) {
			mu.Lock()
			defer mu.Unlock()
			seen[what]++
		}
		type mark struct{}
		observer := func(name string) mortise.Observer {
			in := func(ctx context.Context, what string) context.Context {
				outer, _ := ctx.Value(mark{}).(string)
				if what == "tool" {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, outer+">"+name)
				}
				return context.WithValue(ctx, mark{}, outer+">"+name+":"+what)
			}
			return mortise.Observer{
				Run: func(ctx context.Context, agent string, j *mailbox.Job) (context.Context, func(mailbox.Result, error)) {
					return in(ctx, "run"), func(mailbox.Result, error) { saw("run " + agent + " " + j.Dispatch.Thread) }
				},
				Inference: func(ctx context.Context, c llm.Call) (context.Context, func(llm.Call)) {
					return ctx, func(end llm.Call) { saw(fmt.Sprintf("inference %s %s %v", c.AgentID, end.Model, end.Cost)) }
				},
				Tool: func(ctx context.Context, agent string, call abi.ToolCall) (context.Context, func(abi.ToolResult, error)) {
					return in(ctx, "tool"), func(_ abi.ToolResult, err error) { saw(fmt.Sprint("tool ", agent, call.Name, err != nil)) }
				},
				Event:      func(_ context.Context, e agent.Event) { saw(string(e.Type)) },
				Hook:       func(r phases.Record) { saw("hook " + r.Plugin) },
				Compaction: func(_ context.Context, e compaction.Event) { saw(string(e.Kind)) },
				Task:       func(e background.Event) { saw("task " + string(e.Kind)) },
			}
		}
		r, err := mortise.New(t.Context(), mortise.Config{
			Agents: map[string]mortise.Agent{"a": {
				Model: caller{}, ModelName: "m", Tools: panics{}, Cost: func(string, abi.Usage) float64 { return 1 },
			}},
			Plugins: []phases.Plugin{pins{}}, Compaction: busy(), Observers: []mortise.Observer{observer("one"), {}, observer("two")},
		})
		must(t, err)
		must(t, r.Start(t.Context()))
		for range 3 {
			ask(t, r, strings.Repeat("filler ", 800)+"1")
			time.Sleep(time.Minute)
		}
		must(t, r.Close(t.Context()))
		for what, n := range map[string]int{
			"run a t": 6, "inference a m 1": 12, "tool alooktrue": 6, "run_finish": 6, "hook pins": 12, "started": 2, "swapped": 2, "task started": 2, "task finished": 2,
		} {
			if seen[what] != n {
				t.Errorf("%s was observed %d times, want %d, of %v", what, seen[what], n, seen)
			}
		}
		if len(order) < 2 || order[0] != ">one:run>two:run>one" || order[1] != ">one:run>two:run>one:tool>two" {
			t.Errorf("the tools were in %q", order)
		}
	})
}

// panics is a tool that panics.
type panics struct{ looks }

func (panics) CallTool(context.Context, abi.ToolCall) (abi.ToolResult, error) { panic(secret) }
