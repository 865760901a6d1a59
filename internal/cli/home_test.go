package cli_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/store/sqlitestore"
	threads "github.com/mortise-dev/mortise/thread"
)

// review is a recording of some 170 messages.
func review(t *testing.T) string {
	t.Helper()
	return filepath.Join(root(t), "examples", "sessions", "review.jsonl")
}

// compacting is a config that compacts often, and whose plugin decides about each call.
const compacting = `
plugins: [{module: $ROOT/testdata/guests/guard.wasm}]
compaction:
  window_tokens: 200000
  threshold_tokens: 12000
  keep_recent_tokens: 3000
  summary_tokens: 1500
  summarizer: {module: $ROOT/testdata/guests/summarizers.wasm}
  admission: {quota: {cooldown: 0s}}
`

// leftAfter is what an undo says of the compactions that there are.
func leftAfter(n int) string {
	if n == 1 {
		return "; 1 compaction is left"
	}
	return fmt.Sprintf("; %d compactions are left", n)
}

// beginning writes a recording of the first so many lines of another.
func beginning(t *testing.T, recording string, lines int) string {
	t.Helper()
	text, err := os.ReadFile(recording)
	if err != nil {
		t.Fatal(err)
	}
	all := bytes.SplitAfter(text, []byte("\n"))
	return write(t, filepath.Base(recording), slices.Concat(all[:min(lines, len(all))]...))
}

// ids are those of the messages that the store has of a thread.
func ids(t *testing.T, path, thread string) (all []string) {
	t.Helper()
	file, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close(context.WithoutCancel(t.Context()))
	log, err := threads.On(file).Messages(t.Context(), thread)
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range log {
		all = append(all, m.ID)
	}
	return all
}

// One file keeps all of a run: its compactions are shown and undone, its decisions explained, and
// what the recording has more is played by the next run.
func TestStore(t *testing.T) {
	t.Parallel()
	dir, cfg := t.TempDir(), config(t, compacting)
	path := filepath.Join(dir, "mortise.db")
	code, first, stderr := run(t, cfg, beginning(t, review(t), 101), "--store", path)
	if code != exit.OK || first.RecordStore != path {
		t.Fatalf("exit code %d, records in %q: %s", code, first.RecordStore, stderr)
	}
	v := show(t, path).Threads[0]
	n := len(v.State.Markers)
	if n < 1 || n != first.Threads[0].Compactions || v.Messages != first.Threads[0].Messages || v.ViewMessages >= v.Messages || v.Evidence.AdmittedCount != n {
		t.Fatalf("shown is %+v, the report has %+v", v, first.Threads)
	}
	view := must(t, "compact", "show", path, "--view")
	if out := must(t, "compact", "undo", path, "--thread", v.ID); !strings.Contains(out, leftAfter(n-1)) {
		t.Errorf("undo says %s", out)
	}
	if must(t, "compact", "show", path, "--view") == view || len(show(t, path).Threads[0].State.Markers) != n-1 {
		t.Error("nothing was undone")
	}
	explainedIn(t, path, first)
	before := ids(t, path, v.ID)

	code, second, stderr := run(t, cfg, review(t), "--store", path)
	if code != exit.OK || !second.Threads[0].Complete || second.Runs.Steps == 0 || second.Runs.Steps >= first.Runs.Steps*2 {
		t.Fatalf("exit code %d, %+v, %d steps: %s", code, second.Threads, second.Runs.Steps, stderr)
	}
	after := ids(t, path, v.ID)
	if len(after) != second.Session.Messages || !slices.Equal(after[:len(before)], before) || len(before) < 90 || len(before) >= len(after) {
		t.Errorf("the log has %d and then %d messages, the recording gives %d", len(before), len(after), second.Session.Messages)
	}
	if sorted := slices.Sorted(slices.Values(after)); len(slices.Compact(sorted)) != len(after) {
		t.Error("a message is there twice")
	}
	grown := show(t, path).Threads[0]
	if grown.State.Total <= n || n > 1 && grown.State.Markers[0].ID != v.State.Markers[0].ID || second.Threads[0].Compactions != grown.State.Total {
		t.Errorf("compactions %d, then %+v; the report has %+v", n, grown.State, second.Threads)
	}
	explainedIn(t, path, second)

	// There is nothing more to play, and nothing is written twice.
	code, third, stderr := run(t, cfg, review(t), "--store", path)
	if code != exit.OK || third.Runs.Count != 0 || !third.Threads[0].Complete || !slices.Equal(ids(t, path, v.ID), after) {
		t.Errorf("exit code %d, %d runs, %+v, before %+v: %s", code, third.Runs.Count, third.Threads, second.Threads, stderr)
	}
	if left, err := filepath.Glob(filepath.Join(dir, "*")); err != nil || !slices.Equal(left, []string{path}) {
		t.Errorf("files %q (%v)", left, err)
	}
}

// explainedIn checks that a store explains the runs of a report.
func explainedIn(t *testing.T, path string, r *report) {
	t.Helper()
	for _, known := range r.Runs.List {
		var e explained
		if err := json.Unmarshal([]byte(must(t, "explain", known.ID, "--store", path, "-o", "json")), &e); err != nil {
			t.Fatal(err)
		}
		if e.RunID != known.ID || len(e.Starts) != 1 || len(e.Ends) != 1 || e.Ends[0].Type != known.Termination || len(e.Entries) == 0 ||
			!strings.HasSuffix(e.Starts[0].Source, "review.jsonl") {
			t.Errorf("explained %+v, the report has %+v", e, known)
		}
	}
	list := must(t, "explain", "--store", path)
	if !strings.Contains(list, "newest runs in "+r.RecordStore) || !strings.Contains(list, r.Runs.List[0].ID) {
		t.Errorf("listed %s", list)
	}
}

// A run that was cut off in the middle of a turn continues in the next one.
func TestStoreGoesOnInATurn(t *testing.T) {
	t.Parallel()
	path, cfg := filepath.Join(t.TempDir(), "mortise.db"), config(t, "")
	for _, lines := range []int{2, 8, 9, 40, 1000} {
		code, r, stderr := run(t, cfg, beginning(t, review(t), lines), "--store", path)
		if code != exit.OK || !r.Threads[0].Complete {
			t.Fatalf("%d lines: exit code %d, %+v: %s", lines, code, r.Threads, stderr)
		}
		if got := ids(t, path, r.Threads[0].ID); len(got) != r.Threads[0].Messages || len(got) < min(lines, 174) || len(got) > lines+1 {
			t.Errorf("%d lines: %d messages are kept, %d reported", lines, len(got), r.Threads[0].Messages)
		}
	}
}

// twoConversations is a recording of two.
func twoConversations(t *testing.T) string {
	t.Helper()
	return write(t, "two.json", []byte(`{"id":"a-0","topic":"x","question":[[{"role":"user","content":"one"}]],"scenario":"s"}
{"id":"b-0","topic":"x","question":[[{"role":"user","content":"two"}]],"scenario":"s"}
`))
}

// The config names the store too, relative to its folder; mortise explain finds it there, and several
// recordings are in it.
func TestStoreOfTheConfig(t *testing.T) {
	t.Parallel()
	cfg := config(t, "store: kept.db\nrecord: {keep: 2}\nplugins: [{module: $ROOT/testdata/guests/guard.wasm}]\n")
	path := filepath.Join(filepath.Dir(cfg), "kept.db")
	code, r, stderr := run(t, cfg, write(t, "s.jsonl", []byte(twoTurns)))
	if code != exit.OK || r.RecordStore != path || r.Runs.Count < 2 || len(r.Runs.List) != r.Runs.Count {
		t.Fatalf("exit code %d, %q, %d runs: %s", code, r.RecordStore, r.Runs.Count, stderr)
	}
	if out := must(t, "explain", r.Runs.List[0].ID, "-c", cfg); !strings.Contains(out, "recursive_delete") {
		t.Errorf("explained %s", out)
	}
	if code, _, stderr := run(t, cfg, review(t), "--no-record"); code != exit.Run || !strings.Contains(stderr, `thread "c0001" is there already, and is not the beginning of this recording`) {
		t.Errorf("another recording of the same name: exit code %d: %s", code, stderr)
	}
	for text, says := range map[string]string{
		`{"role": "user", "content": "Hello."}`:                                                           "it has none of its messages",
		`{"role": "system", "content": "You clean up."}` + "\n" + `{"role": "user", "content": "Hello."}`: `its message "m000002" is another one`,
	} {
		code, _, stderr := run(t, config(t, ""), write(t, "other.jsonl", []byte(text)), "--no-record", "--store", path)
		if code != exit.Run || !strings.Contains(stderr, says) {
			t.Errorf("%s: exit code %d: %s", text, code, stderr)
		}
	}
	if code, _, stderr := run(t, cfg, twoConversations(t)); code != exit.OK {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	var all shown
	if err := json.Unmarshal([]byte(must(t, "compact", "show", path, "-o", "json")), &all); err != nil || len(all.Threads) != 3 {
		t.Errorf("%d threads (%v)", len(all.Threads), err)
	}
	if code, _, stderr := mortise(t.Context(), "", "compact", "undo", path); code != exit.Usage || !strings.Contains(stderr, "the file "+path+" holds 3 threads; name one with --thread") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	// Two were kept when the file was opened again, and that recording has no answers to run.
	var list struct{ Runs []struct{ Source string } }
	if err := json.Unmarshal([]byte(must(t, "explain", "-c", cfg, "-o", "json")), &list); err != nil || len(list.Runs) != 2 {
		t.Errorf("runs %+v (%v)", list, err)
	}
}

// Wherever messages or records would have two places, the error has both names; and so is what
// is no place.
func TestStoreRefuses(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	store, other, session := filepath.Join(dir, "x.db"), filepath.Join(dir, "y.db"), write(t, "s.jsonl", []byte(chat))
	text := write(t, "notes.txt", []byte("not a database, but long enough to be one"))
	both := config(t, "store: kept.db\n")
	for name, tc := range map[string]struct {
		args []string
		code exit.Code
		says []string
	}{
		"record store":    {[]string{"run", "-c", config(t, ""), "--store", store, "--record-store", other, session}, exit.Usage, []string{"--store " + store, "--record-store " + other, "where decision records are kept"}},
		"flag and config": {[]string{"run", "-c", config(t, "record: {store: there.db}\n"), "--store", store, session}, exit.Usage, []string{"--store " + store, "record.store there.db of the config"}},
		"config and flag": {[]string{"run", "-c", both, "--record-store", other, session}, exit.Usage, []string{"store kept.db of the config", "--record-store " + other}},
		"config":          {[]string{"run", "-c", config(t, "store: a.db\nrecord: {store: there.db}\n"), session}, exit.Config, []string{"store a.db", "record.store there.db"}},
		"a text file":     {[]string{"run", "-c", config(t, ""), "--store", text, session}, exit.Config, []string{"store: ", text, "is no SQLite file, and it stays as it is"}},
		"a folder":        {[]string{"run", "-c", config(t, ""), "--store", dir, session}, exit.Config, []string{dir + " is a folder", "in a SQLite file, as " + filepath.Join(dir, "mortise.db"), "nats://", "postgres://"}},
		"record folder":   {[]string{"run", "-c", config(t, ""), "--record-store", dir, session}, exit.Config, []string{"records: ", dir + " is a folder", "--no-record"}},
		"show a folder":   {[]string{"compact", "show", dir}, exit.Session, []string{dir + " is a folder"}},
		"explain folder":  {[]string{"explain", "--store", dir}, exit.Config, []string{dir + " is a folder"}},
		"no such folder":  {[]string{"run", "-c", config(t, ""), "--store", filepath.Join(dir, "no", "x.db"), session}, exit.Config, []string{"store: ", "no such file"}},
		"show neither":    {[]string{"compact", "show", text}, exit.Session, []string{text + " is no SQLite file"}},
		"undo neither":    {[]string{"compact", "undo", text}, exit.Session, []string{"is no SQLite file"}},
		"explain neither": {[]string{"explain", "--store", text}, exit.Config, []string{"is no SQLite file"}},
		"explain nowhere": {[]string{"explain", "--store", store}, exit.Usage, []string{"records: there are none: " + store + " is not there"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, _, stderr := mortise(t.Context(), "", tc.args...)
			if code != tc.code {
				t.Errorf("exit code %d, want %d: %s", code, tc.code, stderr)
			}
			for _, says := range tc.says {
				if !strings.Contains(stderr, says) {
					t.Errorf("%q is missing from %s", says, stderr)
				}
			}
		})
	}
}

// A command that only reads creates nothing.
func TestStoreIsNotMade(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "x.db")
	for _, args := range [][]string{{"compact", "show", path}, {"compact", "undo", path}, {"explain", "--store", path}} {
		if code, _, stderr := mortise(t.Context(), "", args...); code == exit.OK || stderr == "" {
			t.Errorf("%v: exit code %d", args, code)
		}
		if _, err := os.Stat(path); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("%v: %v", args, err)
		}
	}
	file, err := sqlitestore.Open(t.Context(), sqlitestore.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	if err := file.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := mortise(t.Context(), "", "compact", "show", path); code != exit.Usage || !strings.Contains(stderr, "the file "+path+" holds no thread; mortise run --store makes one") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// The environment names a store of records too.
func TestStoreEnvironment(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "records.db")
	t.Setenv("MORTISE_RECORD_STORE", dir)
	store, session := filepath.Join(t.TempDir(), "x.db"), write(t, "s.jsonl", []byte(chat))
	code, _, stderr := mortise(t.Context(), "", "run", "-q", "-c", config(t, ""), "--store", store, session)
	if code != exit.Usage || !strings.Contains(stderr, "--store "+store+" and MORTISE_RECORD_STORE "+dir) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if code, r, stderr := run(t, config(t, ""), session, "--store", store, "--no-record"); code != exit.OK || r.RecordStore != "" {
		t.Errorf("exit code %d, records in %q: %s", code, r.RecordStore, stderr)
	}
	t.Setenv("MORTISE_RECORD_STORE", store)
	if code, stdout, stderr := mortise(t.Context(), "", "explain"); code != exit.OK || !strings.Contains(stdout, store) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// Notifications that a process left in the store come up once, as from a folder; and one process at a time
// has them.
func TestStoreHasTheInbox(t *testing.T) {
	t.Parallel()
	session := write(t, "chat.jsonl", []byte(chat))
	_, plain, _ := run(t, config(t, ""), session)
	thread := plain.Threads[0].ID
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "x.db")
	dead(t, path, thread)
	tasks := config(t, "tasks: {dir: '"+dir+"', wording: follow_up}\n")
	if code, r, stderr := run(t, tasks, session, "--store", path); code != exit.OK || r.Threads[0].Messages != 3 {
		t.Fatalf("exit code %d, %+v: %s", code, r.Threads, stderr)
	}
	if _, err := os.Stat(filepath.Join(dir, "tasks.db")); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("the folder has an inbox: %v", err)
	}
	if n, _ := left(t, path, thread); n != 0 {
		t.Errorf("%d notifications are left", n)
	}
	held, err := program.Lock(path + "-inbox")
	if err != nil {
		t.Fatal(err)
	}
	defer held.Close()
	code, _, stderr := mortise(t.Context(), "", "run", "-q", "-c", tasks, "--store", path, session)
	if code != exit.Config || !strings.Contains(stderr, "another process uses it") || !strings.Contains(stderr, "name another file") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
