package record_test

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"reflect"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/phases"
	"github.com/mortise-dev/mortise/record"
	"github.com/mortise-dev/mortise/record/recordtest"
)

func open(t *testing.T, cfg record.Config) *record.Folder {
	t.Helper()
	return openDir(t, filepath.Join(t.TempDir(), "a", "records"), cfg)
}

func openDir(t *testing.T, dir string, cfg record.Config) *record.Folder {
	t.Helper()
	f, err := record.Open(dir, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := f.Close(); err != nil {
			t.Error(err)
		}
	})
	return f
}

func start(run string) record.Start {
	return record.Start{At: time.Unix(1, 0).UTC(), Run: abi.RunIdentity{ThreadID: "t", RunID: run}}
}

// keep writes a record of n entries.
func keep(t *testing.T, f *record.Folder, run string, n int) {
	t.Helper()
	if err := f.Start(start(run)); err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if err := f.Add(run, record.Entry{Plugin: "p", Step: i}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.End(run, record.End{Type: "natural_end", Steps: n}); err != nil {
		t.Fatal(err)
	}
}

func load(t *testing.T, f *record.Folder, run string) *record.Run {
	t.Helper()
	r, err := f.Load(run)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestStore(t *testing.T) {
	t.Parallel()
	recordtest.TestStore(t, func(t *testing.T) func(record.Config) record.Store {
		t.Helper()
		dir := t.TempDir()
		return func(cfg record.Config) record.Store { return openDir(t, dir, cfg) }
	})
}

// Of says of each kind of call what became of it, and nothing of what was said.
func TestOf(t *testing.T) {
	t.Parallel()
	ticket := &abi.SuspendTicket{ID: "t1", Message: "secret", Parameters: "secret"}
	for want, r := range map[record.Verdict]phases.Record{
		record.NoOpinion:  {Attempt: 1},
		record.Applied:    {Attempt: 1, Gate: &abi.GateDecision{Action: abi.GateSuspend, Ticket: ticket, Result: &abi.ToolResult{Message: "secret"}}},
		record.Overridden: {Attempt: 1, Applied: []phases.Change{{What: "emit"}, {What: "stop", Overridden: true}}},
		record.Refused:    {Attempt: 1, Refused: []phases.Refusal{{What: "effect 0 stop", Reason: "beyond its mode"}}, Err: "refused"},
		record.Deferred:   {Attempt: 1, Deferred: "by p"},
		record.Failed:     {Attempt: 1, Err: "trap"},
		record.Skipped:    {Quarantined: true, Refused: []phases.Refusal{{What: "hook", Reason: "in quarantine"}}},
	} {
		r.Duration = 1500 * time.Microsecond
		e := record.Of(&r)
		if e.Verdict != want || e.DurationMS != 1.5 || (e.Saw != nil) != (r.Attempt > 0) {
			t.Errorf("%s: %+v", want, e)
		}
		if strings.Contains(fmt.Sprintf("%+v", e.Gate), "secret") {
			t.Errorf("%s tells what was asked: %+v", want, e.Gate)
		}
	}
}

func TestRoundTrip(t *testing.T) {
	t.Parallel()
	f := open(t, record.Config{Source: "s.jsonl"})
	r := phases.Record{
		At: time.Unix(2, 0).UTC(), Phase: abi.ToolGate, Step: 3, Plugin: "guard", CallID: "c", ToolName: "bash", Attempt: 2,
		MessagesSent: 1, MessagesFrom: 4, MessagesTotal: 5, Revision: 6, Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "no"}, Overridden: true,
		Applied: []phases.Change{{What: "set", Target: "k", Note: "n"}}, Refused: []phases.Refusal{{What: "w", Reason: "r"}}, Err: "e",
	}
	want := []record.Entry{record.Of(&r), {At: time.Unix(3, 0).UTC(), Compaction: &compaction.Event{Kind: compaction.EventSwapped, Thread: "t"}}}
	if err := f.Start(start("run-1")); err != nil {
		t.Fatal(err)
	}
	for _, e := range want {
		if err := f.Add("run-1", e); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.End("run-1", record.End{Type: "suspended", Detail: "ask", Steps: 1}); err != nil {
		t.Fatal(err)
	}
	keep(t, f, "run-1", 0) // It goes on, and ends.
	got := load(t, f, "run-1")
	if !reflect.DeepEqual(got.Entries, want) {
		t.Errorf("read %+v\nwrote %+v", got.Entries, want)
	}
	if len(got.Starts) != 2 || got.Starts[0].Source != "s.jsonl" || len(got.Ends) != 2 || got.Ends[0].Detail != "ask" || got.ID() != "run-1" || got.Unreadable != 0 {
		t.Errorf("record %+v", got)
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	f := open(t, record.Config{})
	if _, err := f.Load("x"); !errors.Is(err, record.ErrUnknown) || !strings.Contains(err.Error(), "there are none in") {
		t.Errorf("of an empty folder: %v", err)
	}
	for _, id := range []string{"ab1", "ab2", "ab", "c"} {
		keep(t, f, id, 1)
	}
	for id, want := range map[string]string{"ab1": "ab1", "ab": "ab", "c": "c"} {
		if r := load(t, f, id); r.ID() != want {
			t.Errorf("%s is %s", id, r.ID())
		}
	}
	if _, err := f.Load("a"); !errors.Is(err, record.ErrAmbiguous) || !strings.Contains(err.Error(), "ab1") || strings.Contains(err.Error(), " c") {
		t.Errorf("ambiguous: %v", err)
	}
	for _, id := range []string{"zz", "", "../c", "/etc/passwd"} {
		if _, err := f.Load(id); !errors.Is(err, record.ErrUnknown) || !strings.Contains(err.Error(), "ab1") {
			t.Errorf("%q: %v", id, err)
		}
	}
	list, err := f.List(2)
	if err != nil || len(list) != 2 || list[0].Start.Run.ThreadID != "t" {
		t.Errorf("list %+v, %v", list, err)
	}
}

// TestIDsStayInTheFolder: an id that is no file's name is refused.
func TestIDsStayInTheFolder(t *testing.T) {
	t.Parallel()
	f := open(t, record.Config{})
	for _, id := range []string{"", "..", "../x", "a/b", `a\b`, "-x", ".hidden", strings.Repeat("x", 129), "a\x00"} {
		if err := f.Start(start(id)); err == nil {
			t.Errorf("%q was taken", id)
		}
	}
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Symlink(outside, filepath.Join(f.Dir(), "link.jsonl")); err != nil {
		testskip.Skip(t, "no symbolic links here: %v", err)
	}
	if err := f.Start(start("link")); err == nil {
		t.Error("a link out of the folder was followed")
	}
	if _, err := os.Stat(outside); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("outside: %v", err)
	}
}

func TestFilesArePrivate(t *testing.T) {
	t.Parallel()
	if runtime.GOOS == "windows" {
		testskip.Skip(t, "no such permissions on Windows")
	}
	f := open(t, record.Config{})
	keep(t, f, "r", 1)
	for path, want := range map[string]fs.FileMode{f.Dir(): 0o700, filepath.Join(f.Dir(), "r.jsonl"): 0o600} {
		info, err := os.Stat(path)
		if err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v", path, info.Mode(), err)
		}
	}
}

func TestSizeIsBounded(t *testing.T) {
	t.Parallel()
	const limit = 4 << 10
	f := open(t, record.Config{RunBytes: limit})
	keep(t, f, "r", 1000)
	r := load(t, f, "r")
	if len(r.Entries) == 0 || len(r.Ends) != 1 || r.Ends[0].Dropped != 1000-len(r.Entries) || r.Ends[0].Dropped == 0 {
		t.Errorf("%d entries, ends %+v", len(r.Entries), r.Ends)
	}
	info, err := os.Stat(filepath.Join(f.Dir(), "r.jsonl"))
	if err != nil || info.Size() > limit+1024 {
		t.Errorf("%d bytes, %v", info.Size(), err)
	}
}

// TestNumberIsBounded: the newest are kept, and nothing that is not ours is removed.
func TestNumberIsBounded(t *testing.T) {
	t.Parallel()
	f := open(t, record.Config{})
	for i := range 5 {
		id := fmt.Sprint("r", i)
		keep(t, f, id, 1)
		at := time.Unix(int64(1000+i), 0)
		if err := os.Chtimes(filepath.Join(f.Dir(), id+".jsonl"), at, at); err != nil {
			t.Fatal(err)
		}
	}
	stranger := filepath.Join(f.Dir(), "notes.txt")
	if err := os.WriteFile(stranger, []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	again := openDir(t, f.Dir(), record.Config{Keep: 2})
	list, err := again.List(10)
	if err != nil || len(list) != 2 || list[0].ID != "r4" || list[1].ID != "r3" {
		t.Errorf("kept %+v, %v", list, err)
	}
	if _, err := os.Stat(stranger); err != nil {
		t.Error(err)
	}
}

// TestBrokenLines: what a crash cut off, and what somebody else wrote, is left out and
// counted.
func TestBrokenLines(t *testing.T) {
	t.Parallel()
	f := open(t, record.Config{})
	keep(t, f, "r", 2)
	path := filepath.Join(f.Dir(), "r.jsonl")
	out, err := os.OpenFile(path, os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		t.Fatal(err)
	}
	long := append(bytes.Repeat([]byte("x"), 5<<20), '\n')
	if _, err := out.Write(append(long, []byte("{}\nnull\n{\"entry\": {\"plu")...)); err != nil {
		t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	keep(t, f, "r", 1) // The run goes on.
	r := load(t, f, "r")
	if len(r.Starts) != 2 || len(r.Entries) != 3 || len(r.Ends) != 2 || r.Unreadable != 4 {
		t.Errorf("%d starts, %d entries, %d ends, %d unreadable", len(r.Starts), len(r.Entries), len(r.Ends), r.Unreadable)
	}
}

func TestConcurrent(t *testing.T) {
	t.Parallel()
	f := open(t, record.Config{})
	var group sync.WaitGroup
	for i := range 8 {
		group.Go(func() { keep(t, f, fmt.Sprint("r", i), 50) })
	}
	group.Wait()
	for i := range 8 {
		if r := load(t, f, fmt.Sprint("r", i)); len(r.Entries) != 50 || r.Unreadable != 0 {
			t.Errorf("run %d: %d entries, %d unreadable", i, len(r.Entries), r.Unreadable)
		}
	}
}

// What was not started is left out; a closed folder says so.
func TestStrangers(t *testing.T) {
	t.Parallel()
	f := open(t, record.Config{})
	if err := errors.Join(f.Add("never", record.Entry{}), f.End("never", record.End{})); err != nil {
		t.Error(err)
	}
	if err := f.Start(start("open")); err != nil {
		t.Fatal(err)
	}
	other, err := record.Look(f.Dir())
	if err != nil {
		t.Fatal(err)
	}
	if r := load(t, other, "open"); len(r.Starts) != 1 || len(r.Ends) != 0 {
		t.Errorf("a run under way: %+v", r)
	}
	if err := errors.Join(other.Close(), other.Close()); err != nil {
		t.Error(err)
	}
	if err := other.Start(start("late")); err == nil {
		t.Error("a closed folder takes records")
	}
	if _, err := record.Look(filepath.Join(f.Dir(), "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("error %v", err)
	}
	if _, err := record.Open("", record.Config{}); err == nil {
		t.Error("no folder")
	}
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte(`{"start":{"schema":"mortise.record.v1","run":{"thread_id":"t","run_id":"r"}}}` + "\n" + `{"entry":{"plugin":"p"}}`))
	f.Add([]byte("\n\n{}\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		folder := open(t, record.Config{})
		if err := os.WriteFile(filepath.Join(folder.Dir(), "r.jsonl"), data, 0o600); err != nil {
			t.Fatal(err)
		}
		r, err := folder.Load("r")
		if err == nil && len(r.Starts) == 0 {
			t.Error("a record without a beginning")
		}
	})
}

func ExampleFolder() {
	dir, err := os.MkdirTemp("", "records")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	f, err := record.Open(dir, record.Config{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer f.Close()
	err = f.Start(record.Start{Run: abi.RunIdentity{ThreadID: "t", RunID: "run-1"}})
	decided := phases.Record{
		Plugin: "guard", Phase: abi.ToolGate, Attempt: 1, Gate: &abi.GateDecision{Action: abi.GateBlock, Reason: "deletes everything"},
	}
	err = errors.Join(err, f.Add("run-1", record.Of(&decided)), f.End("run-1", record.End{Type: "blocked"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	r, err := f.Load("run")
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(r.Ends[0].Type, "by", r.Entries[0].Plugin, "because it", r.Entries[0].Gate.Reason)
	// Output: blocked by guard because it deletes everything
}

// A store of one's own has to put lines; the rest of the writing half is there.
func ExampleKeeper() {
	lines := map[string]int{}
	keeper := record.NewKeeper("memory", record.Config{RunBytes: 1 << 20, Source: "demo"}, func(p record.Put) (kept bool, err error) {
		if lines[p.Run] == 0 && !p.First {
			return false, nil
		}
		lines[p.Run]++
		return true, nil
	})
	defer keeper.Close()
	for _, err := range []error{
		keeper.Start(record.Start{Run: abi.RunIdentity{RunID: "r1"}}),
		keeper.Add("r1", record.Entry{Plugin: "guard", Verdict: record.Applied}),
		keeper.Add("r2", record.Entry{Plugin: "guard"}), // was not started here
		keeper.End("r1", record.End{Type: "natural"}),
	} {
		if err != nil {
			fmt.Println(err)
		}
	}
	fmt.Println(lines)
	// Output: map[r1:3]
}
