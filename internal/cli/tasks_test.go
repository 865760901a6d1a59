package cli_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/outbox"
)

// chat is a recording of one question.
const chat = `{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"good day"}]}
`

// dead is a process that died: one task had ended, one was running. It returns the
// folder of its tasks.
func dead(t *testing.T, thread string) string {
	t.Helper()
	dir := t.TempDir()
	file, err := outbox.OpenFile(outbox.FileConfig{Path: filepath.Join(dir, "outbox")})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range []background.Info{
		{ID: "bg_1", Thread: thread, Type: "build", Class: background.Blocking, Status: background.Completed, Result: "42 pages"},
		{ID: "bg_2", Thread: thread, Type: "build", Class: background.Blocking, Status: background.Running, Attempt: 1},
	} {
		record, err := json.Marshal(info)
		if err != nil {
			t.Fatal(err)
		}
		c := outbox.Change{Thread: thread, Task: info.ID, Record: record}
		if info.Status == background.Completed {
			c.Key, c.Data = info.ID, []byte(`{"kind":"completed","task_id":"bg_1","result":"42 pages"}`)
		}
		if _, err := file.Append(t.Context(), c); err != nil {
			t.Fatal(err)
		}
	}
	if err := file.Close(); err != nil {
		t.Fatal(err)
	}
	return dir
}

// left is how many notices a folder has, and which tasks.
func left(t *testing.T, dir, thread string) (notices int, tasks map[string][]byte) {
	t.Helper()
	file, err := outbox.OpenFile(outbox.FileConfig{Path: filepath.Join(dir, "outbox")})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	entries, err := file.Pending(context.Background(), thread, 0, 100)
	if err != nil {
		t.Fatal(err)
	}
	if tasks, err = file.Records(context.Background(), thread); err != nil {
		t.Fatal(err)
	}
	return len(entries), tasks
}

// TestNewsOfTheProcessBefore: what a process left in the folder, and that its running
// task died with it, is put into the conversation once, and is then gone for good.
func TestNewsOfTheProcessBefore(t *testing.T) {
	t.Parallel()
	session := write(t, "chat.jsonl", []byte(chat))
	_, plain, stderr := run(t, config(t, ""), session)
	if len(plain.Threads) != 1 || plain.Threads[0].Messages != 2 {
		t.Fatalf("the recording alone is %+v: %s", plain.Threads, stderr)
	}
	thread := plain.Threads[0].ID
	dir := dead(t, thread)
	for i, want := range []int{3, 2} { // one message for both; and none the next time
		code, r, stderr := run(t, config(t, "tasks: {dir: '"+dir+"', wording: follow_up}\n"), session)
		if code != cli.ExitOK || len(r.Threads) != 1 || r.Threads[0].Messages != want || !r.Threads[0].Complete || r.Runs.Steps != 1 {
			t.Fatalf("run %d ends with %d, %+v, %+v: %s", i, code, r.Threads, r.Runs, stderr)
		}
		if n, tasks := left(t, dir, thread); n != 0 || len(tasks) != 2 || !strings.Contains(string(tasks["bg_2"]), background.Orphaned) {
			t.Fatalf("after run %d %d notices are left, and %q", i, n, tasks)
		}
	}
}

// TestFolderOfTasksInUse: two processes cannot share a folder, and are told so.
func TestFolderOfTasksInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file, err := outbox.OpenFile(outbox.FileConfig{Path: filepath.Join(dir, "outbox")})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	code, r, _ := run(t, config(t, "tasks: {dir: '"+dir+"'}\n"), write(t, "chat.jsonl", []byte(chat)))
	if code != cli.ExitConfig || !strings.Contains(r.Error, "tasks.dir") || !strings.Contains(r.Error, "give this one another folder") {
		t.Fatalf("exit code %d: %s", code, r.Error)
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
	tasks, tools, done, err := cli.OpenTasks(t.Context(), t.TempDir(), "a", named{"read_file", "send_message"})
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
	nothing := func(context.Context, func(string, any) bool) error { return nil }
	if _, err := tasks.Housekeep(t.Context(), "a", "compaction", "", nothing); err != nil {
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
	if got := names(); got != "read_file send_message cancel_task list_tasks task_result wait_task read_relay" {
		t.Errorf("with tasks the tools are %s", got)
	}
	text := call("wait_task", map[string]any{"task_id": id})
	_, rest, _ := strings.Cut(text, "`read_relay`")
	if !strings.Contains(text, "state: completed") || len(text) > 5000 || rest == "" {
		t.Fatalf("the result is %.500s", text)
	}
	handle := regexp.MustCompile(`build-\d+-\w+`).FindString(text)
	if got := call("read_relay", map[string]any{"handle": handle, "offset": int64(10)}); !strings.HasPrefix(got, "line\nline\n") {
		t.Errorf("%s of %q is %.200s", "read_relay", handle, got)
	}
	if got := call("send_message", nil); got != "own send_message" {
		t.Errorf("send_message answers %q", got)
	}
	if err := done(t.Context()); err != nil {
		t.Error(err)
	}
}
