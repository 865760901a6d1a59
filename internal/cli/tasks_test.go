package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/internal/cli"
	"github.com/mortise-dev/mortise/internal/cli/links"
	"github.com/mortise-dev/mortise/store/sqlitestore"
)

// chat is a recording of one question.
const chat = `{"messages":[{"role":"user","content":"hello"},{"role":"assistant","content":"good day"}]}
`

// opened opens the inbox of a SQLite file.
func opened(t *testing.T, path string) (o *inbox.Inbox, end func()) {
	t.Helper()
	file, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if o, err = inbox.New(t.Context(), inbox.Config{Store: file}); err != nil {
		t.Fatal(err)
	}
	return o, func() {
		ctx := context.WithoutCancel(t.Context())
		if err := errors.Join(o.Close(ctx), file.Close(ctx)); err != nil {
			t.Error(err)
		}
	}
}

// dead is a process that died: one task had ended, one was running. It leaves the
// file at path.
func dead(t *testing.T, path, thread string) {
	t.Helper()
	o, end := opened(t, path)
	defer end()
	for _, info := range []background.Info{
		{ID: "bg_1", Thread: thread, Type: "build", Class: background.Blocking, Status: background.Completed, Result: "42 pages"},
		{ID: "bg_2", Thread: thread, Type: "build", Class: background.Blocking, Status: background.Running, Attempt: 1},
	} {
		record, err := json.Marshal(info)
		if err != nil {
			t.Fatal(err)
		}
		var n *abi.Notice
		if info.Status == background.Completed {
			n = &abi.Notice{Kind: abi.NoticeCompleted, TaskID: info.ID, Result: "42 pages"}
		}
		for _, n := range []*abi.Notice{nil, n} {
			if err := o.Commit(t.Context(), thread, info.ID, record, n); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// left is how many notifications a file has, and which tasks.
func left(t *testing.T, path, thread string) (waiting int, tasks map[string][]byte) {
	t.Helper()
	o, end := opened(t, path)
	defer end()
	tasks, err := o.Records(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	return o.Waiting(thread), tasks
}

// TestNotificationsOfTheProcessBefore: what a process left in the folder, and that its running
// task died with it, is put into the conversation once, and is then gone for good.
func TestNotificationsOfTheProcessBefore(t *testing.T) {
	t.Parallel()
	session := write(t, "chat.jsonl", []byte(chat))
	_, plain, stderr := run(t, config(t, ""), session)
	if len(plain.Threads) != 1 || plain.Threads[0].Messages != 2 {
		t.Fatalf("the recording alone is %+v: %s", plain.Threads, stderr)
	}
	thread := plain.Threads[0].ID
	dir := t.TempDir()
	dead(t, filepath.Join(dir, "tasks.db"), thread)
	for i, want := range []int{3, 2} { // one message for both; and none the next time
		code, r, stderr := run(t, config(t, "tasks: {dir: '"+dir+"', wording: follow_up}\n"), session)
		if code != cli.ExitOK || len(r.Threads) != 1 || r.Threads[0].Messages != want || !r.Threads[0].Complete || r.Runs.Steps != 1 {
			t.Fatalf("run %d ends with %d, %+v, %+v: %s", i, code, r.Threads, r.Runs, stderr)
		}
		if n, tasks := left(t, filepath.Join(dir, "tasks.db"), thread); n != 0 || len(tasks) != 2 || !strings.Contains(string(tasks["bg_2"]), background.Orphaned) {
			t.Fatalf("after run %d %d notices are left, and %q", i, n, tasks)
		}
	}
}

// TestFolderOfTasksInUse: two processes cannot share a folder, and get an error.
func TestFolderOfTasksInUse(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	held, err := cli.Lock(filepath.Join(dir, "tasks.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	code, r, _ := run(t, config(t, "tasks: {dir: '"+dir+"'}\n"), write(t, "chat.jsonl", []byte(chat)))
	if code != cli.ExitConfig || !strings.Contains(r.Error, "tasks.dir") || !strings.Contains(r.Error, "name another folder") {
		t.Fatalf("exit code %d: %s", code, r.Error)
	}
}

// TestFolderWithAJournal: a folder of a version that had journals is refused, with a hint.
func TestFolderWithAJournal(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "outbox"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	code, r, _ := run(t, config(t, "tasks: {dir: '"+dir+"'}\n"), write(t, "chat.jsonl", []byte(chat)))
	if code != cli.ExitConfig || !strings.Contains(r.Error, "journal of an earlier version") || !strings.Contains(r.Error, "or remove the file") {
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
	tasks, tools, done, err := cli.OpenTasks(t.Context(), links.All(), t.TempDir(), "a", named{"read_file", "send_message"})
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
