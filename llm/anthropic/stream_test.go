package anthropic_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

const (
	begin = `{"type":"message_start","message":{"id":"msg_1","type":"message","role":"assistant","model":"claude-x","content":[],` +
		`"usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":1}}}`
	end = `{"type":"message_stop"}`
)

func started(i int, block string) string {
	return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":%s}`, i, block)
}

func delta(i int, d string) string {
	return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":%s}`, i, d)
}

func says(i int, text string) string {
	return delta(i, fmt.Sprintf(`{"type":"text_delta","text":%q}`, text))
}

func input(i int, text string) string {
	return delta(i, fmt.Sprintf(`{"type":"input_json_delta","partial_json":%q}`, text))
}

func stopped(i int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }

func stopping(reason string) string {
	return fmt.Sprintf(`{"type":"message_delta","delta":{"stop_reason":%q,"stop_sequence":null},"usage":{"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}`, reason)
}

// full is an answer with all that there is.
func full() string {
	return sse(
		begin, `{"type": "ping"}`,
		started(0, `{"type":"thinking","thinking":"","signature":""}`),
		delta(0, `{"type":"thinking_delta","thinking":"Hm"}`), delta(0, `{"type":"thinking_delta","thinking":"m."}`),
		delta(0, `{"type":"signature_delta","signature":"czE="}`), stopped(0),
		started(1, `{"type":"redacted_thinking","data":"cmVk"}`), stopped(1),
		started(2, `{"type":"text","text":""}`), says(2, "I "), says(2, "look."), stopped(2),
		started(3, `{"type":"tool_use","id":"c1","name":"fs_read_4074bc02","input":{}}`), input(3, ""), input(3, `{"n":`), input(3, `12345678901234567}`), stopped(3),
		started(4, `{"type":"thinking","thinking":"","signature":"czI="}`), stopped(4),
		started(5, `{"type":"tool_use","id":"c2","name":"now","input":{}}`), stopped(5),
		`{"type":"a_new_event","index":9}`,
		stopping("tool_use"), end,
	)
}

func fullWant() *abi.Response {
	return &abi.Response{
		Model: "claude-x", StopReason: abi.StopToolUse,
		Usage: &abi.Usage{PromptTokens: 60, CompletionTokens: 9, TotalTokens: 69, CacheReadTokens: 30, CacheCreationTokens: 20, ThinkingTokens: 4},
		Message: abi.Message{
			Role:    abi.RoleAssistant,
			Content: []abi.ContentBlock{thinking("Hmm.", "czE="), thinking("", "anthropic.redacted:cmVk"), abi.Text("I look."), thinking("", "anthropic.after:1:czI=")},
			ToolCalls: []abi.ToolCall{
				{ID: "c1", Name: "fs.read", Arguments: map[string]any{"n": int64(12345678901234567)}}, {ID: "c2", Name: "now", Arguments: map[string]any{}},
			},
		},
	}
}

func collect(ctx context.Context, t *testing.T, r llm.Request, script ...answer) (*abi.Response, error) {
	t.Helper()
	m, w := open(t, script...)
	got, err := llm.Collect(func(emit func(llm.Delta) bool) error { return m.Stream(ctx, r, emit) })
	if len(w.bodies) > 0 && w.bodies[0]["stream"] != true {
		t.Error("the request did not ask for a stream")
	}
	return got, err
}

func TestStream(t *testing.T) {
	t.Parallel()
	got, err := collect(t.Context(), t, requests()["tools"], answer{body: full()})
	if err != nil {
		t.Fatal(err)
	}
	if want := fullWant(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", asJSON(got), asJSON(want))
	}
}

// TestInfer: the whole answer is what the streamed one is.
func TestInfer(t *testing.T) {
	t.Parallel()
	m, _ := open(t, answer{body: `{"model":"claude-x","role":"assistant","content":[
		{"type":"thinking","thinking":"Hmm.","signature":"czE="},{"type":"redacted_thinking","data":"cmVk"},{"type":"text","text":"I look."},
		{"type":"tool_use","id":"c1","name":"fs_read_4074bc02","input":{"n":12345678901234567}},
		{"type":"thinking","thinking":"","signature":"czI="},{"type":"a_new_block"},{"type":"tool_use","id":"c2","name":"now","input":{}}],
		"stop_reason":"tool_use","usage":{"input_tokens":10,"cache_creation_input_tokens":20,"cache_read_input_tokens":30,"output_tokens":9,"output_tokens_details":{"thinking_tokens":4}}}`})
	got, err := m.Infer(t.Context(), requests()["tools"])
	if err != nil {
		t.Fatal(err)
	}
	if want := fullWant(); !reflect.DeepEqual(got, want) {
		t.Errorf("got  %s\nwant %s", asJSON(got), asJSON(want))
	}
}

// TestBlocksAtOnce: the API may send of several blocks in turn.
func TestBlocksAtOnce(t *testing.T) {
	t.Parallel()
	use := func(id string) string { return fmt.Sprintf(`{"type":"tool_use","id":%q,"name":"t","input":{}}`, id) }
	got, err := collect(t.Context(), t, asks("Hi."), answer{body: sse(
		begin, started(0, use("c1")), input(0, `{"a"`), started(1, use("c2")), input(1, `{"b":2}`), stopped(1), started(2, `{"type":"text","text":"A"}`),
		input(0, `:1}`), says(2, "B"), stopped(0), says(2, "C"), stopping("tool_use"), end,
	)})
	if err != nil {
		t.Fatal(err)
	}
	want := []abi.ToolCall{{ID: "c1", Name: "t", Arguments: map[string]any{"a": int64(1)}}, {ID: "c2", Name: "t", Arguments: map[string]any{"b": int64(2)}}}
	if !reflect.DeepEqual(got.Message.ToolCalls, want) || got.Message.Text() != "ABC" {
		t.Errorf("got %s", asJSON(got.Message))
	}
}

func TestStopReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]abi.StopReason{
		"end_turn": abi.StopEndTurn, "stop_sequence": abi.StopEndTurn, "tool_use": abi.StopToolUse, "max_tokens": abi.StopMaxTokens,
		"pause_turn": abi.StopMaxTokens, "model_context_window_exceeded": abi.StopMaxTokens, "one_of_tomorrow": abi.StopEndTurn,
	} {
		got, err := collect(t.Context(), t, asks("Hi."), answer{body: sse(begin, stopping(reason), end)})
		if err != nil || got.StopReason != want {
			t.Errorf("%s: got %+v, %v", reason, got, err)
		}
	}
}

func TestRefusal(t *testing.T) {
	t.Parallel()
	details := `"stop_reason":"refusal","stop_details":{"type":"refusal","category":"bio","explanation":"Not this."}`
	_, err := collect(t.Context(), t, asks("Hi."), answer{body: sse(begin, `{"type":"message_delta","delta":{`+details+`},"usage":{"output_tokens":1}}`, end)})
	m, _ := open(t, answer{body: `{"model":"claude-x","content":[],` + details + `}`})
	_, whole := m.Infer(t.Context(), asks("Hi."))
	for _, err := range []error{err, whole} {
		if kind(err) != llm.KindContentFiltered || !strings.Contains(err.Error(), "the model refused to answer (bio): Not this.") {
			t.Errorf("got %v", err)
		}
	}
}

func TestBrokenStream(t *testing.T) {
	t.Parallel()
	half := []string{begin, started(0, `{"type":"text","text":""}`), says(0, "He")}
	overloaded := `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_9"}`
	for want, c := range map[string]struct {
		a    answer
		kind llm.Kind
	}{
		"ended before the answer did":                {answer{body: sse(half...)}, llm.KindStreamInterrupted},
		"answer did: unexpected EOF":                 {answer{body: sse(half...), cut: io.ErrUnexpectedEOF}, llm.KindStreamInterrupted},
		"Overloaded (request req_9)":                 {answer{body: sse(append(half, overloaded)...)}, llm.KindOverloaded},
		"an event is not JSON":                       {answer{body: sse(append(half, `{oops`)...)}, llm.KindStreamInterrupted},
		"block 3, which was not begun":               {answer{body: sse(append(half, says(3, "x"))...)}, llm.KindStreamInterrupted},
		"block 5 begins where block 1 was due":       {answer{body: sse(append(half, started(5, `{"type":"text"}`))...)}, llm.KindStreamInterrupted},
		"Internal server error":                      {answer{body: sse(`{"type":"error","error":{"type":"api_error","message":"Internal server error"}}`)}, llm.KindProvider},
		"Number of requests exceeds":                 {answer{status: 429, body: `{"type":"error","error":{"type":"rate_limit_error","message":"Number of requests exceeds your limit"}}`}, llm.KindRateLimited},
		"the stream ended before the answer did":     {answer{body: `{}`}, llm.KindStreamInterrupted},
		"(model claude-sonnet-4-5): the stream ende": {answer{body: ""}, llm.KindStreamInterrupted},
	} {
		_, err := collect(t.Context(), t, asks("Hi."), c.a)
		if kind(err) != c.kind || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}

// TestStopWanted: an answer whose reason to stop came is whole, whatever becomes of the connection.
func TestStopWanted(t *testing.T) {
	t.Parallel()
	got, err := collect(t.Context(), t, asks("Hi."), answer{body: sse(begin, started(0, `{"type":"text","text":"Hi."}`), stopped(0), stopping("end_turn")), cut: io.ErrUnexpectedEOF})
	if err != nil || got.Message.Text() != "Hi." {
		t.Errorf("got %v, %v", got, err)
	}
	m, _ := open(t, answer{body: full()})
	if err := m.Stream(t.Context(), asks("Hi."), func(llm.Delta) bool { return false }); err != nil {
		t.Errorf("a stream that is not wanted ended with %v", err)
	}
}

func TestCancelled(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	m, _ := open(t, answer{body: full()})
	err := m.Stream(ctx, asks("Hi."), func(llm.Delta) bool {
		cancel()
		return false
	})
	if !errors.Is(err, context.Canceled) {
		t.Errorf("the stream ended with %v", err)
	}
	if _, err := m.Infer(ctx, asks("Hi.")); kind(err) != llm.KindCancelled || !errors.Is(err, context.Canceled) {
		t.Errorf("the request ended with %v", err)
	}
}

// TestContinuation: a client resumes a stream that broke off, and the API accepts what it then asks.
func TestContinuation(t *testing.T) {
	t.Parallel()
	w := &wire{script: []answer{
		{body: sse(begin, started(0, `{"type":"thinking","thinking":"Hm"}`), stopped(0), started(1, `{"type":"text","text":""}`), says(1, "Hello ")), cut: io.ErrUnexpectedEOF},
		{body: sse(begin, started(0, `{"type":"text","text":""}`), says(0, "world."), stopped(0), stopping("end_turn"), end)},
	}}
	m, err := newModel(w)
	if err != nil {
		t.Fatal(err)
	}
	c, err := llm.NewClient(llm.ClientConfig{Model: m, Retry: llm.Retry{BackoffBaseMS: 1}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := c.Ask(t.Context(), asks("Greet."), nil)
	if err != nil || got.Response.Message.Text() != "Hello world." || got.Requests != 2 {
		t.Fatalf("got %+v, %v", got, err)
	}
	messages := asJSON(w.bodies[1]["messages"])
	if !strings.Contains(messages, `{"content":[{"text":"Hello ","type":"text"}],"role":"assistant"},{"content":[{"cache_control":{"type":"ephemeral"},"text":"Your answer was interrupted`) {
		t.Errorf("sent %s", messages)
	}
}

func TestRetryAfterTheStreamBegan(t *testing.T) {
	t.Parallel()
	h := http.Header{"Retry-After": {"7"}}
	_, err := collect(t.Context(), t, asks("Hi."), answer{status: 529, header: h, body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`})
	failure, _ := errors.AsType[*llm.Error](err)
	if failure == nil || failure.Kind != llm.KindOverloaded || failure.RetryAfter.Seconds() != 7 {
		t.Errorf("got %+v", err)
	}
}
