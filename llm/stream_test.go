package llm_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

func streaming(turns ...turn) *live { return &live{plain{turns: turns}} }

func TestStream(t *testing.T) {
	t.Parallel()
	m := streaming(turn{deltas: []llm.Delta{
		{Type: llm.DeltaReasoning, Text: "hm"},
		{Type: llm.DeltaReasoning, Text: "m"},
		{Type: llm.DeltaSignature, Text: "sig"},
		text("I "), text("look."), block(),
		call("c1", "read"), args(`{"n":`), args(`12345678901234567}`), block(), call("c2", "list"), block(), call("c3", "odd"), args("{oops"),
		bill(10),
		{Type: llm.DeltaUsage, Usage: &abi.Usage{CompletionTokens: 7}},
		stop(abi.StopToolUse),
	}})
	got := ask(t.Context(), t, llm.ClientConfig{Model: m}, llm.Request{Model: "m"})
	if got.err != nil {
		t.Fatal(got.err)
	}
	r := got.Response
	if b := r.Message.Content; len(b) != 2 || b[0] != (abi.ContentBlock{Type: abi.BlockThinking, Text: "hmm", Signature: "sig"}) || b[1].Text != "I look." {
		t.Errorf("content %+v", b)
	}
	if c := r.Message.ToolCalls; len(c) != 2 || fmt.Sprint(c[0].Arguments) != "map[n:12345678901234567]" || c[1].Arguments != nil {
		t.Errorf("calls %+v", c)
	}
	if len(got.Malformed) != 1 || got.Malformed[0].ID != "c3" {
		t.Errorf("malformed %+v", got.Malformed)
	}
	if r.Usage == nil || r.Usage.PromptTokens != 10 || r.Usage.CompletionTokens != 7 || r.StopReason != abi.StopToolUse {
		t.Errorf("usage %+v, stop %q", r.Usage, r.StopReason)
	}
	want := "reasoning,reasoning,text,text,call_start c1,call_arguments c1,call_arguments c1,call_start c2,call_start c3,call_arguments c3," +
		"call_ready c1,call_ready c2,call_cancel c3"
	if got.types() != want {
		t.Errorf("received %s\nwant  %s", got.types(), want)
	}
}

// TestRecovery: the four ways in which a stream that broke off continues.
func TestRecovery(t *testing.T) {
	t.Parallel()
	rest := turn{deltas: []llm.Delta{text("world"), bill(2), stop(abi.StopEndTurn)}}
	cases := map[string]struct {
		turns  []turn
		says   string
		heard  string
		sent   string // the second request, behind the user's message
		calls  int
		lost   string
		took   time.Duration
		prompt int64
	}{
		"synthesize tool use": {
			turns: []turn{{deltas: []llm.Delta{text("a"), call("c1", "t"), args("{}"), block(), call("c2", "t"), args(`{"x"`), bill(9)}, err: interrupted()}},
			says:  "a", heard: "text,call_start c1,call_arguments c1,call_start c2,call_arguments c2,call_cancel c2,call_ready c1",
			calls: 1, lost: "c2", prompt: 9,
		},
		"truncate before tool": {
			turns: []turn{{deltas: []llm.Delta{text("hello "), call("c1", "t"), args(`{"x"`), bill(9)}, err: overloaded()}, rest},
			says:  "hello world", heard: "text,call_start c1,call_arguments c1,call_cancel c1,text",
			sent: "assistant:hello |user:Your answer was interrupted", took: 2 * time.Second, prompt: 11,
		},
		"continue text": {
			turns: []turn{{deltas: []llm.Delta{text("hello ")}, err: interrupted()}, rest},
			says:  "hello world", heard: "text,text", sent: "assistant:hello |user:Your answer was interrupted", took: 500 * time.Millisecond, prompt: 2,
		},
		"whole restart": {
			turns: []turn{{deltas: []llm.Delta{{Type: llm.DeltaReasoning, Text: "so"}}, err: interrupted()}, rest},
			says:  "world", heard: "reasoning,reset,text", took: 500 * time.Millisecond, prompt: 2,
		},
		"idle stall": {
			turns: []turn{{deltas: []llm.Delta{text("hello ")}, hang: true}, rest},
			says:  "hello world", heard: "text,text", sent: "assistant:hello |user:Your answer was interrupted", took: 60*time.Second + 200*time.Millisecond, prompt: 2,
		},
		"twice": {
			turns: []turn{{deltas: []llm.Delta{text("hello ")}, err: interrupted()}, {deltas: []llm.Delta{text("wide ")}, err: interrupted()}, rest},
			says:  "hello wide world", heard: "text,text,text", took: 1500 * time.Millisecond, prompt: 2,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := streaming(c.turns...)
				question := abi.Message{ID: "u", Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text("hi")}}
				got := ask(t.Context(), t, llm.ClientConfig{Model: m}, llm.Request{Model: "m", Messages: []abi.Message{question}})
				if got.err != nil || got.says() != c.says || got.types() != c.heard || got.took != c.took {
					t.Errorf("answer %q, error %v, after %v, received\n%s\nwant\n%s", got.says(), got.err, got.took, got.types(), c.heard)
				}
				if c.sent != "" && !strings.HasPrefix(behind(m.requests[1].Messages), c.sent) {
					t.Errorf("the second request ends in %q", behind(m.requests[1].Messages))
				}
				if len(got.Response.Message.ToolCalls) != c.calls || c.lost != "" && got.Lost[0].ID != c.lost || got.Response.Usage.PromptTokens != c.prompt {
					t.Errorf("response %+v, lost %+v, usage %+v", got.Response.Message, got.Lost, got.Response.Usage)
				}
			})
		})
	}
}

// behind renders the messages after the first.
func behind(messages []abi.Message) string {
	var out []string
	for i := range messages[1:] {
		out = append(out, string(messages[i+1].Role)+":"+messages[i+1].Text())
	}
	return strings.Join(out, "|")
}

// TestRestartBeginsAnew: nothing of a void beginning is left, thinking with a
// signature neither.
func TestRestartBeginsAnew(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		think := []llm.Delta{{Type: llm.DeltaReasoning, Text: "so"}, {Type: llm.DeltaSignature, Text: "s1"}}
		m := streaming(turn{deltas: think, err: interrupted()}, turn{deltas: append(think, text("fine"))})
		got := ask(t.Context(), t, llm.ClientConfig{Model: m}, llm.Request{Model: "m"})
		if got.err != nil || len(got.Response.Message.Content) != 2 {
			t.Errorf("content %+v, error %v", got.Response.Message.Content, got.err)
		}
	})
}

func TestRecoveryEnds(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		piece := turn{deltas: []llm.Delta{text("more ")}, err: interrupted()}
		m := streaming(piece, piece, piece, piece, piece)
		got := ask(t.Context(), t, llm.ClientConfig{Model: m}, llm.Request{Model: "m"})
		if got.err == nil || len(m.requests) != 3 || got.says() != "more more more " {
			t.Errorf("%d requests, error %v, kept %q", len(m.requests), got.err, got.says())
		}
	})
}

// TestBreakBeforeTheFirstDelta is not a stream to take up: it is retried.
func TestBreakBeforeTheFirstDelta(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		m := streaming(turn{err: interrupted()}, turn{deltas: []llm.Delta{text("fine")}})
		got := ask(t.Context(), t, llm.ClientConfig{Model: m, Retry: llm.Retry{MaxStreamRetries: -1}}, llm.Request{Model: "m"})
		if got.err != nil || got.says() != "fine" || got.types() != "text" {
			t.Errorf("answer %q, error %v, received %s", got.says(), got.err, got.types())
		}
	})
}

func TestIdleTimeDoublesForModelsThatThink(t *testing.T) {
	t.Parallel()
	for name, r := range map[string]llm.Request{
		"deep-thinking-1": {Model: "deep-thinking-1"}, "o3-mini": {Model: "o3-mini"},
		"effort": {Model: "m", Override: &abi.InferenceOverride{ReasoningEffort: new("high")}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				m := streaming(turn{hang: true})
				got := ask(t.Context(), t, llm.ClientConfig{Model: m, Retry: llm.Retry{MaxStreamRetries: -1, StreamIdleTimeoutSecs: 7}}, r)
				if got.err == nil || got.took != 14*time.Second {
					t.Errorf("gave up after %v: %v", got.took, got.err)
				}
			})
		})
	}
}

func TestCancelKeepsTheTextSoFar(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		m := streaming(turn{deltas: []llm.Delta{text("half a "), call("c1", "t"), args("{}"), block()}, hang: true})
		got := ask(ctx, t, llm.ClientConfig{Model: m}, llm.Request{Model: "m"})
		if !errors.Is(got.err, context.DeadlineExceeded) || got.says() != "half a " || len(got.Response.Message.ToolCalls) != 0 || got.Response.StopReason != abi.StopEndTurn {
			t.Errorf("error %v, kept %+v", got.err, got.Response)
		}
	})
}

func TestDeafModelIsLeftBehind(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		deaf := make(chan struct{})
		got := ask(ctx, t, llm.ClientConfig{Model: streaming(turn{deltas: []llm.Delta{text("a")}, deaf: deaf}), Grace: 3 * time.Second}, llm.Request{})
		if !errors.Is(got.err, context.DeadlineExceeded) || got.took != 4*time.Second || got.says() != "a" {
			t.Errorf("error %v after %v", got.err, got.took)
		}
		close(deaf)
		synctest.Wait()
	})
}

func TestPanicOfAModel(t *testing.T) {
	t.Parallel()
	got := ask(t.Context(), t, llm.ClientConfig{Model: panics{}}, llm.Request{})
	if !errors.Is(got.err, llm.ErrPanic) {
		t.Errorf("error %v", got.err)
	}
}

type panics struct{}

func (panics) Infer(context.Context, llm.Request) (*abi.Response, error) { panic("no") }

func TestEndlessAnswerIsRefused(t *testing.T) {
	t.Parallel()
	got := ask(t.Context(), t, llm.ClientConfig{Model: endless{}}, llm.Request{})
	failure, _ := errors.AsType[*llm.Error](got.err)
	if failure == nil || failure.Kind != llm.KindInvalidRequest || !strings.Contains(failure.Message, "larger than what is taken") {
		t.Errorf("error %v", got.err)
	}
}

type endless struct{}

func (endless) Infer(context.Context, llm.Request) (*abi.Response, error) { return nil, nil }

func (endless) Stream(ctx context.Context, _ llm.Request, emit func(llm.Delta) bool) error {
	for emit(text(strings.Repeat("x", 1<<20))) {
	}
	return ctx.Err()
}

// TestContinuation: an answer that was cut at the output limit continues, with or
// without streaming.
func TestContinuation(t *testing.T) {
	t.Parallel()
	cut := turn{deltas: []llm.Delta{text("one "), bill(1), stop(abi.StopMaxTokens)}}
	halfCall := turn{deltas: []llm.Delta{text("one "), call("c1", "t"), args(`{"x":"`), bill(1), stop(abi.StopMaxTokens)}}
	rest := turn{deltas: []llm.Delta{text("two"), bill(1), stop(abi.StopEndTurn)}}
	whole := turn{deltas: []llm.Delta{call("c1", "t"), args(`{}`), block(), bill(1), stop(abi.StopMaxTokens)}}
	for name, c := range map[string]struct {
		turns    []turn
		plain    bool
		says     string
		requests int
	}{
		"text":           {turns: []turn{cut, rest}, says: "one two", requests: 2},
		"text, plain":    {turns: []turn{cut, rest}, plain: true, says: "one two", requests: 2},
		"half a call":    {turns: []turn{halfCall, rest}, says: "one two", requests: 2},
		"a whole call":   {turns: []turn{whole}, requests: 1},
		"bounded":        {turns: []turn{cut, cut, cut, cut}, says: "one one one ", requests: 3},
		"bounded, plain": {turns: []turn{cut, cut, cut, cut}, plain: true, says: "one one one ", requests: 3},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := streaming(c.turns...)
			var m llm.Model = l
			if c.plain {
				m = &l.plain
			}
			tools := []abi.Tool{{Name: "only"}}
			got := ask(t.Context(), t, llm.ClientConfig{Model: m}, llm.Request{Model: "m", Tools: tools})
			if got.err != nil || got.says() != c.says || len(l.requests) != c.requests || len(got.Malformed) != 0 {
				t.Fatalf("%q after %d requests, error %v, malformed %v", got.says(), len(l.requests), got.err, got.Malformed)
			}
			last := l.requests[len(l.requests)-1]
			if len(last.Tools) != 1 || c.requests > 1 && last.Messages[len(last.Messages)-1].Visibility != abi.VisibilityInternal {
				t.Errorf("the last request is %+v", last)
			}
			if got.Response.Usage.PromptTokens != int64(c.requests) {
				t.Errorf("usage %+v of %d requests", got.Response.Usage, c.requests)
			}
		})
	}
}

// kept is a store of answers under way.
type kept struct {
	mu      sync.Mutex
	held    map[string]llm.Partial
	saves   int
	deleted int
}

func (k *kept) SavePartial(_ context.Context, key string, p llm.Partial) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.held[key] = p
	k.saves++
	return nil
}

func (k *kept) LoadPartial(_ context.Context, key string) (llm.Partial, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	p, ok := k.held[key]
	return p, ok, nil
}

func (k *kept) DeletePartial(_ context.Context, key string) error {
	k.mu.Lock()
	defer k.mu.Unlock()
	delete(k.held, key)
	k.deleted++
	return nil
}

func TestStreamsAreKeptWhileTheyCome(t *testing.T) {
	t.Parallel()
	k := &kept{held: map[string]llm.Partial{}}
	m := streaming(turn{deltas: []llm.Delta{
		text("1"), text("2"), text("3"), text("4"), text("5"), text("6"), text("7"), text("8"), text("9"), stop(abi.StopEndTurn),
	}})
	got := ask(t.Context(), t, llm.ClientConfig{Model: m, Partials: k}, llm.Request{RunID: "r", Step: 1})
	if got.says() != "123456789" || k.saves != 2 || k.deleted != 1 || len(k.held) != 0 {
		t.Errorf("answer %q, %d saves, %d deletions", got.says(), k.saves, k.deleted)
	}
}

func TestStreamIsTakenUpByAnotherProcess(t *testing.T) {
	t.Parallel()
	k := &kept{held: map[string]llm.Partial{"r/1": {Content: []abi.ContentBlock{abi.Text("hello ")}}}}
	m := streaming(turn{deltas: []llm.Delta{text("world"), stop(abi.StopEndTurn)}})
	cfg := llm.ClientConfig{Model: m, Partials: k, Retry: llm.Retry{MaxStreamRetries: -1}}
	got := ask(t.Context(), t, cfg, llm.Request{RunID: "r", Step: 1, Messages: []abi.Message{{ID: "u"}}})
	if got.says() != "hello world" || !strings.HasPrefix(behind(m.requests[0].Messages), "assistant:hello ") {
		t.Errorf("answer %q to %q", got.says(), behind(m.requests[0].Messages))
	}
	calls := llm.Partial{Calls: []llm.PartialCall{{ID: "c1", Name: "t", Arguments: `{"n":1}`, Done: true}}}
	k.held["r/2"] = calls
	got = ask(t.Context(), t, cfg, llm.Request{RunID: "r", Step: 2})
	if len(got.Response.Message.ToolCalls) != 1 || len(m.requests) != 1 || len(k.held) != 0 {
		t.Errorf("response %+v after %d requests", got.Response, len(m.requests))
	}
}

// FuzzStream: whatever a provider streams, the answer is one that a run can take.
func FuzzStream(f *testing.F) {
	f.Add([]byte{0, 1, 2, 3, 4, 5, 6, 7}, "{}", true)
	f.Add([]byte{3, 4, 5, 3, 4, 0, 9}, `{"a":[1e400,-0,18446744073709551616]}`, false)
	types := []llm.DeltaType{
		llm.DeltaText, llm.DeltaReasoning, llm.DeltaSignature, llm.DeltaCallStart, llm.DeltaCallArguments,
		llm.DeltaBlockStop, llm.DeltaUsage, llm.DeltaStop, llm.DeltaReset, "odd",
	}
	f.Fuzz(func(t *testing.T, script []byte, s string, breaks bool) {
		var one turn
		for i, b := range script[:min(len(script), 100)] {
			one.deltas = append(one.deltas, llm.Delta{Type: types[int(b)%len(types)], Text: s, CallID: string(rune('a' + i%3)), Name: "t"})
		}
		if breaks {
			one.err = interrupted()
		}
		synctest.Test(t, func(t *testing.T) {
			got := ask(t.Context(), t, llm.ClientConfig{Model: streaming(one, one)}, llm.Request{RunID: "r"})
			if got.err == nil && got.Response == nil {
				t.Error("neither an error nor a response")
			}
			if got.err != nil && got.Response != nil && len(got.Response.Message.ToolCalls) > 0 {
				t.Error("calls of an answer that failed")
			}
		})
	})
}
