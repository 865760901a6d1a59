package cli_test

import (
	"context"
	"encoding/json"
	"path/filepath"
	"strings"
	"testing"

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
