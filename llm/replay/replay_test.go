package replay_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/replay"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// drive runs a recording to its end the way a runtime does, and returns every
// message in the order in which the runtime saw it.
func drive(t *testing.T, r *replay.Replay) []abi.Message {
	t.Helper()
	var seen []abi.Message
	for turn, ok := r.Next(); ok; turn, ok = r.Next() {
		seen = append(seen, turn.Messages...)
		if !turn.Answered {
			continue
		}
		seen = append(seen, run(t, r)...)
	}
	return seen
}

func run(t *testing.T, r *replay.Replay) []abi.Message {
	t.Helper()
	var seen []abi.Message
	for {
		response, err := r.Infer(t.Context(), llm.Request{Model: "asked"})
		if errors.Is(err, replay.ErrNoAnswer) && len(seen) > 0 {
			return seen // the recording ends with results
		}
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, response.Message)
		if response.StopReason == abi.StopEndTurn {
			return seen
		}
		for _, call := range response.Message.ToolCalls {
			result, err := r.CallTool(t.Context(), call)
			if err != nil {
				t.Fatal(err)
			}
			seen = append(seen, abi.Message{Role: abi.RoleTool, ToolCallID: result.CallID, Content: result.Content})
		}
		seen = append(seen, r.Steering()...)
	}
}

// Wherever a replay may stand, what comes is the rest of the recording.
func TestSeek(t *testing.T) {
	t.Parallel()
	recording := `
{"role": "system", "content": "s"}
{"role": "user", "content": "1"}
{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "x", "arguments": "{}"}}, {"id": "c2", "function": {"name": "x", "arguments": "{}"}}]}
{"role": "tool", "tool_call_id": "c1", "content": "a"}
{"role": "tool", "tool_call_id": "c2", "content": "b"}
{"role": "assistant", "content": "2"}
{"role": "user", "content": "3"}
{"role": "assistant", "content": "4"}
`
	for done, want := range map[int]int{1: 7, 2: 6, 5: 3, 6: 2, 7: 1, 8: 0, 0: -1, 3: -1, 4: -1, 9: -1, -1: -1} {
		file, err := transcript.Read(strings.NewReader(recording), transcript.Options{})
		if err != nil {
			t.Fatal(err)
		}
		r, err := replay.New(file.Conversations[0], replay.Config{})
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Seek(done); (err != nil) != (want < 0) {
			t.Errorf("seek to %d: %v", done, err)
		}
		if want < 0 {
			want = 7 // it stayed where it was
		} else if at, _ := r.Position(); at != done {
			t.Errorf("it stands at %d, not %d", at, done)
		}
		if seen := drive(t, r); len(seen) != want {
			t.Errorf("from %d on come %d messages, want %d", done, len(seen), want)
		}
	}
}

func TestEveryRealRecordingIsReproduced(t *testing.T) {
	t.Parallel()
	dir := sharedTranscripts(t)
	paths, err := filepath.Glob(filepath.Join(dir, "*", "*.json*"))
	if err != nil {
		t.Fatal(err)
	}
	more, err := filepath.Glob(filepath.Join(dir, "*", "*", "*.traj.json"))
	if err != nil {
		t.Fatal(err)
	}
	paths = append(paths, more...)
	if len(paths) < 15 {
		t.Errorf("%d recordings found, want at least 15", len(paths))
	}
	for _, path := range paths {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			file, err := transcript.Open(path, transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			for i := range file.Conversations {
				checkReproduced(t, file.Conversations[i])
			}
		})
	}
}

func checkReproduced(t *testing.T, c transcript.Conversation) {
	t.Helper()
	r, err := replay.New(c, replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	want := c.Messages()
	for len(want) > 0 && want[0].Role == abi.RoleSystem {
		want = want[1:]
	}
	got := drive(t, r)
	if len(got) != len(want) {
		t.Fatalf("conversation %s: %d messages, want %d", c.ID, len(got), len(want))
	}
	for i := range want {
		if want[i].Role == abi.RoleTool {
			want[i].ID = "" // a runtime names its tool messages itself
		}
		if !reflect.DeepEqual(got[i], want[i]) {
			t.Fatalf("conversation %s, message %d:\ngot  %+v\nwant %+v", c.ID, i, got[i], want[i])
		}
	}
	if done, total := r.Position(); done != total || total != len(c.Entries) {
		t.Errorf("position %d of %d, want %d", done, total, len(c.Entries))
	}
}

func sharedTranscripts(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join(repoRoot(t), "..", "shared")
	}
	dir = filepath.Join(dir, "data", "transcripts")
	if _, err := os.Stat(dir); err != nil {
		testskip.Skip(t, "no real recordings in data/transcripts of the shared folder (set MORTISE_SHARED): %v", err)
	}
	return dir
}

func repoRoot(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = parent
	}
}

const recording = `[
{"role":"system","content":"be brief"},
{"role":"system","content":"be kind"},
{"role":"user","content":"one"},
{"role":"assistant","content":"a1","model":"m","usage":{"prompt_tokens":5,"completion_tokens":2},"tool_calls":[
  {"id":"x","function":{"name":"bash","arguments":"{}"}},
  {"id":"y","function":{"name":"lookup","arguments":"{}"}}]},
{"role":"tool","tool_call_id":"x","content":"x done"},
{"role":"tool","tool_call_id":"y","content":"y broke","is_error":true},
{"role":"user","content":"by the way"},
{"role":"assistant","content":"a2"},
{"role":"assistant","content":"a3"},
{"role":"system","content":"new rules"},
{"role":"user","content":"two"}]`

func open(t *testing.T, cfg replay.Config) *replay.Replay {
	t.Helper()
	file, err := transcript.Read(strings.NewReader(recording), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	r, err := replay.New(file.Conversations[0], cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func texts(ms []abi.Message) string {
	var all []string
	for i := range ms {
		all = append(all, string(ms[i].Role)+":"+ms[i].Text())
	}
	return strings.Join(all, ",")
}

func TestWalk(t *testing.T) {
	t.Parallel()
	r := open(t, replay.Config{})
	if got := r.SystemPrompt(); got != "be brief\n\nbe kind" {
		t.Errorf("system prompt %q", got)
	}
	var _ llm.Model = r

	turn, ok := r.Next()
	if !ok || !turn.Answered || texts(turn.Messages) != "user:one" {
		t.Fatalf("first turn %+v, %v", turn, ok)
	}
	a1, err := r.Infer(t.Context(), llm.Request{Model: "asked"})
	if err != nil {
		t.Fatal(err)
	}
	if a1.Model != "m" || a1.StopReason != abi.StopToolUse || a1.Message.Text() != "a1" || a1.Usage == nil || a1.Usage.PromptTokens != 5 {
		t.Errorf("first answer %+v", a1)
	}
	_, err = r.Infer(t.Context(), llm.Request{})
	if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.KindInvalidRequest || e.Retryable() || !errors.Is(err, replay.ErrNoAnswer) {
		t.Errorf("answer in place of a user message: %v", err)
	}
	if got := texts(r.Steering()); got != "user:by the way" {
		t.Errorf("steering %q", got)
	}
	if got := r.Steering(); len(got) != 0 {
		t.Errorf("steering twice: %v", got)
	}
	a2, err := r.Infer(t.Context(), llm.Request{Model: "asked"})
	if err != nil || a2.Model != "asked" || a2.StopReason != abi.StopEndTurn || a2.Usage != nil {
		t.Errorf("second answer %+v, %v", a2, err)
	}
	if turn, ok = r.Next(); !ok || !turn.Answered || len(turn.Messages) != 0 {
		t.Errorf("turn before a second answer in a row: %+v, %v", turn, ok)
	}
	if a3, err := r.Infer(t.Context(), llm.Request{}); err != nil || a3.Message.Text() != "a3" {
		t.Errorf("third answer %+v, %v", a3, err)
	}
	if turn, ok = r.Next(); !ok || turn.Answered || texts(turn.Messages) != "system:new rules,user:two" {
		t.Errorf("last turn %+v, %v", turn, ok)
	}
	if _, err := r.Infer(t.Context(), llm.Request{}); !errors.Is(err, replay.ErrNoAnswer) {
		t.Errorf("answer behind the end: %v", err)
	}
	if turn, ok = r.Next(); ok {
		t.Errorf("turn behind the end: %+v", turn)
	}
}

func TestGateStoppedTheRun(t *testing.T) {
	t.Parallel()
	r := open(t, replay.Config{})
	r.Next()
	if _, err := r.Infer(t.Context(), llm.Request{}); err != nil {
		t.Fatal(err)
	}
	// No call was executed; the run is over.
	if turn, ok := r.Next(); !ok || texts(turn.Messages) != "user:by the way" {
		t.Errorf("turn after a stopped run: %+v, %v", turn, ok)
	}
}

func TestCallTool(t *testing.T) {
	t.Parallel()
	r := open(t, replay.Config{})
	x, y := abi.ToolCall{ID: "x", Name: "bash"}, abi.ToolCall{ID: "y", Name: "lookup"}
	early, err := r.CallTool(t.Context(), x)
	if err != nil || early.Status != abi.ToolError || early.Message != `no recorded result for call "x" of tool bash` {
		t.Errorf("a call that was not made yet: %+v, %v", early, err)
	}
	r.Next()
	if _, err := r.Infer(t.Context(), llm.Request{}); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			got, err := r.CallTool(t.Context(), x)
			if err != nil || got.Status != abi.ToolSuccess || got.ToolName != "bash" || got.Content[0].Text != "x done" {
				t.Errorf("x: %+v, %v", got, err)
			}
			got, err = r.CallTool(t.Context(), y)
			if err != nil || got.Status != abi.ToolError || got.CallID != "y" || got.Content[0].Text != "y broke" {
				t.Errorf("y: %+v, %v", got, err)
			}
		})
	}
	wg.Wait()
	unknown, err := r.CallTool(t.Context(), abi.ToolCall{ID: "z", Name: "bash"})
	if err != nil || unknown.Status != abi.ToolError || !strings.Contains(unknown.Message, "no recorded result") {
		t.Errorf("unknown call: %+v, %v", unknown, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := r.CallTool(ctx, x); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := open(t, replay.Config{Pace: time.Minute})
		r.Next()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := r.Infer(ctx, llm.Request{})
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.KindTimeout {
			t.Errorf("deadline within the pace: %v", err)
		}
		ctx, cancel = context.WithCancel(t.Context())
		cancel()
		_, err = r.Infer(ctx, llm.Request{})
		if e, ok := errors.AsType[*llm.Error](err); !ok || e.Kind != llm.KindCancelled {
			t.Errorf("cancelled within the pace: %v", err)
		}
		start := time.Now()
		got, err := r.Infer(t.Context(), llm.Request{})
		if err != nil || got.Message.Text() != "a1" {
			t.Errorf("the answer is lost: %+v, %v", got, err)
		}
		if took := time.Since(start); took != time.Minute {
			t.Errorf("took %v, want a minute", took)
		}
	})
}

func TestNewRefuses(t *testing.T) {
	t.Parallel()
	if _, err := replay.New(transcript.Conversation{}, replay.Config{Pace: -1}); err == nil || !strings.Contains(err.Error(), "Pace") {
		t.Errorf("negative pace: %v", err)
	}
	orphan := transcript.Conversation{ID: "c", Entries: []transcript.Entry{{Message: abi.Message{ID: "m", Role: abi.RoleTool}}}}
	if _, err := replay.New(orphan, replay.Config{}); err == nil || !strings.Contains(err.Error(), "replay: conversation c: message 0") {
		t.Errorf("orphan: %v", err)
	}
	r, err := replay.New(transcript.Conversation{}, replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	if _, ok := r.Next(); ok || r.SystemPrompt() != "" {
		t.Error("an empty conversation has a turn or a system prompt")
	}
}

func TestToolKinds(t *testing.T) {
	t.Parallel()
	want := map[string]abi.ToolKind{
		"bash": abi.ToolExecute, "Bash": abi.ToolExecute, "shell": abi.ToolExecute,
		"read": abi.ToolRead, "Read": abi.ToolRead, "cat": abi.ToolRead,
		"edit": abi.ToolEdit, "Edit": abi.ToolEdit, "write": abi.ToolEdit, "Write": abi.ToolEdit,
		"grep": abi.ToolSearch, "Grep": abi.ToolSearch, "find": abi.ToolSearch, "Glob": abi.ToolSearch,
		"readme": abi.ToolOther, "bashful": abi.ToolOther, "TodoWrite": abi.ToolOther, "BASH": abi.ToolOther,
	}
	var c transcript.Conversation
	for name := range want {
		c.Entries = append(c.Entries,
			transcript.Entry{Message: abi.Message{ID: name, Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: name, Name: name}, {ID: name + "2", Name: name}}}},
			transcript.Entry{Message: abi.Message{ID: name + "r", Role: abi.RoleTool, ToolCallID: name}},
			transcript.Entry{Message: abi.Message{ID: name + "r2", Role: abi.RoleTool, ToolCallID: name + "2"}},
		)
	}
	r, err := replay.New(c, replay.Config{})
	if err != nil {
		t.Fatal(err)
	}
	tools := r.Tools()
	if len(tools) != len(want) {
		t.Errorf("%d tools, want %d", len(tools), len(want))
	}
	for _, tool := range tools {
		if tool.Kind != want[tool.Name] {
			t.Errorf("%s is %s, want %s", tool.Name, tool.Kind, want[tool.Name])
		}
	}
}
