package replaycmd_test

import (
	"context"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/internal/cli/replaycmd"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// The report notes that a recorded result is not that of a rewritten call.
func TestReportCountsRewrittenCalls(t *testing.T) {
	t.Parallel()
	if got := replaycmd.PrintRuns(replaycmd.RunsReport{ToolCalls: 3, Rewritten: 2}); !strings.Contains(got, "plugins rewrote 2 tool calls; results from the recording are those of the recorded arguments") {
		t.Errorf("%s", got)
	}
	if got := replaycmd.PrintRuns(replaycmd.RunsReport{ToolCalls: 3}); strings.Contains(got, "rewrote") {
		t.Errorf("%s", got)
	}
}

// Calls that a gate decided for one reason are one row with their number, and none is left out.
func TestReportCountsGatedCalls(t *testing.T) {
	t.Parallel()
	var list []replaycmd.GateReport
	for n := range 1000 {
		list = append(list, replaycmd.GateReport{Plugin: "guard", Action: "block", Tool: "bash", CallID: fmt.Sprint(n), Reason: "no network"})
	}
	list = append(list, replaycmd.GateReport{Plugin: "guard", Action: "ask", Tool: "bash", Reason: "no network"})
	got := strings.Join(strings.Fields(replaycmd.PrintGates(list...)), " ")
	want := "tool calls that a gate decided plugin action tool times reason guard block bash 1000 no network guard ask bash 1 no network"
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	list = nil
	for n := range 300 {
		list = append(list, replaycmd.GateReport{Plugin: "guard", Action: "block", Tool: "bash", Reason: fmt.Sprint("reason ", n)})
	}
	if got := replaycmd.PrintGates(list...); !strings.Contains(got, "and 176 kinds more") {
		t.Errorf("the table ends without what is left out:\n%s", got)
	}
}

// A stored answer that a plugin replaced is still that of the recording.
func TestReplacedAnswerIsTheRecorded(t *testing.T) {
	t.Parallel()
	recorded := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("secret")}, ToolCalls: []abi.ToolCall{{ID: "c1", Name: "ls"}}}
	kept := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("[removed]")}}
	if replaycmd.SameMessage(&recorded, &kept) {
		t.Error("another text is the same message")
	}
	kept.Metadata = map[string]any{abi.MetadataOriginal: map[string]any{
		"content": []any{map[string]any{"type": "text", "text": "secret"}}, "tool_calls": []any{map[string]any{"id": "c1", "name": "ls"}},
	}}
	if !replaycmd.SameMessage(&recorded, &kept) {
		t.Error("the original is not compared")
	}
}

// named are tools that answer with their own name.
type named []string

func (n named) Tools() (out []abi.Tool) {
	for _, name := range n {
		out = append(out, abi.Tool{Name: name})
	}
	return out
}

func (n named) CallTool(_ context.Context, call abi.ToolCall) (abi.ToolResult, error) {
	return abi.ToolResult{Message: "own " + call.Name}, nil
}

// TestToolsOfTasks: the tools for tasks are there as long as the thread has tasks, and
// take no name from the thread's own.
func TestToolsOfTasks(t *testing.T) {
	t.Parallel()
	tasks, tools, done, err := replaycmd.OpenTasks(t.Context(), openStore, t.TempDir(), "a", named{"read_file", "send_message"})
	if err != nil {
		t.Fatal(err)
	}
	names := func() string {
		var out []string
		for _, tool := range tools.Tools() {
			out = append(out, tool.Name)
		}
		return strings.Join(out, " ")
	}
	call := func(name string, arguments map[string]any) string {
		r, err := tools.CallTool(t.Context(), abi.ToolCall{ID: "c", Name: name, Arguments: arguments})
		if err != nil {
			t.Fatal(err)
		}
		m := abi.Message{Content: r.Content}
		return m.Text() + r.Message
	}
	nothing := func(context.Context) error { return nil }
	if err := tasks.Housekeep(t.Context(), "a", "bg_0", "compaction", "", nothing); err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "read_file send_message" {
		t.Errorf("without tasks the tools are %s", got)
	}
	large := strings.Repeat("line\n", 5000)
	id, err := tasks.Spawn(t.Context(), background.Spec{Thread: "a", Type: "build", Body: func(context.Context, *background.Task) (any, error) { return large, nil }})
	if err != nil {
		t.Fatal(err)
	}
	if got := names(); got != "read_file send_message cancel_task list_tasks task_result wait_task read_output" {
		t.Errorf("with tasks the tools are %s", got)
	}
	text := call("wait_task", map[string]any{"task_id": id})
	_, rest, _ := strings.Cut(text, "`read_output`")
	if !strings.Contains(text, "state: completed") || len(text) > 5000 || rest == "" {
		t.Fatalf("the result is %.500s", text)
	}
	handle := regexp.MustCompile(`build-[A-Z2-7]{26}`).FindString(text)
	if got := call("read_output", map[string]any{"handle": handle, "offset": int64(10)}); !strings.HasPrefix(got, "line\nline\n") {
		t.Errorf("%s of %q is %.200s", "read_output", handle, got)
	}
	if got := call("send_message", nil); got != "own send_message" {
		t.Errorf("send_message answers %q", got)
	}
	if err := done(t.Context()); err != nil {
		t.Error(err)
	}
}

func openStore(ctx context.Context, name string, _ bool, _ *slog.Logger) (program.Store, error) {
	return sqlitestore.Open(ctx, sqlitestore.Config{Path: name})
}
