package cli_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
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
		if code != exit.OK || len(r.Threads) != 1 || r.Threads[0].Messages != want || !r.Threads[0].Complete || r.Runs.Steps != 1 {
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
	held, err := program.Lock(filepath.Join(dir, "tasks.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	code, r, _ := run(t, config(t, "tasks: {dir: '"+dir+"'}\n"), write(t, "chat.jsonl", []byte(chat)))
	if code != exit.Config || !strings.Contains(r.Error, "tasks.dir") || !strings.Contains(r.Error, "name another folder") {
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
	if code != exit.Config || !strings.Contains(r.Error, "journal of an earlier version") || !strings.Contains(r.Error, "or remove the file") {
		t.Fatalf("exit code %d: %s", code, r.Error)
	}
}
