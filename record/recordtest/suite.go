package recordtest

import (
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/record"
)

// TestStore checks that stores keep the contract. Make makes an empty one, and returns how to
// open it, any number of times at once, as other processes would; it sees to it that what is opened
// is closed when the test ends.
func TestStore(t *testing.T, makeStore func(t *testing.T) (open func(record.Config) record.Store)) {
	t.Helper()
	for name, check := range map[string]func(*testing.T, func(record.Config) record.Store){
		"round trip": roundTrip,
		"runs":       runs,
		"resumed":    resumed,
		"find":       find,
		"ids":        ids,
		"bytes":      bytes,
		"line":       line,
		"prune":      prune,
		"strangers":  strangers,
		"handles":    handles,
		"one run":    oneRun,
		"reopen":     reopen,
		"closed":     closed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, makeStore(t))
		})
	}
}

// full is an entry with every field of its kind set.
func full(step int) record.Entry {
	return record.Entry{
		At: time.Unix(int64(step), 5).UTC(), Phase: abi.ToolGate, Step: step, Plugin: "guard", Handler: "h", CallID: "c", Tool: "bash",
		Verdict: record.Overridden, Attempt: 2, DurationMS: 1.5, Saw: &record.Saw{Messages: 1, From: 4, Total: 5, Revision: 6},
		Applied: []record.Change{{What: "set", Target: "k", Note: "</n>\n\u2028", Overridden: true}}, Refused: []record.Refusal{{What: "w", Reason: "r"}},
		Gate:       &record.Gate{Action: abi.GateBlock, Reason: "no", Ticket: "t1", Overridden: true},
		DeferredBy: "p", Error: "e", Quarantined: true,
	}
}

func start(run string) record.Start {
	return record.Start{At: time.Unix(1, 0).UTC(), Run: abi.RunIdentity{ThreadID: "t", RunID: run}}
}

// begin, put and end do what has to succeed.
func begin(t *testing.T, s record.Store, run string) {
	t.Helper()
	if err := s.Start(start(run)); err != nil {
		t.Fatalf("start %s: %v", run, err)
	}
}

func put(t *testing.T, s record.Store, run string, n int) {
	t.Helper()
	for i := range n {
		if err := s.Add(run, record.Entry{Plugin: run, Step: i}); err != nil {
			t.Fatalf("add to %s: %v", run, err)
		}
	}
}

func end(t *testing.T, s record.Store, run string) {
	t.Helper()
	if err := s.End(run, record.End{At: time.Unix(9, 0).UTC(), Type: "natural_end", Steps: 3}); err != nil {
		t.Fatalf("end %s: %v", run, err)
	}
}

// keep writes a record of n entries.
func keep(t *testing.T, s record.Store, run string, n int) {
	t.Helper()
	begin(t, s, run)
	put(t, s, run, n)
	end(t, s, run)
}

func load(t *testing.T, s record.Store, run string) *record.Run {
	t.Helper()
	r, err := s.Load(run)
	if err != nil {
		t.Fatalf("load %s: %v", run, err)
	}
	return r
}

// expect checks the numbers of a record, and that its entries are in order.
func expect(t *testing.T, s record.Store, run string, starts, entries, ends int) {
	t.Helper()
	r := load(t, s, run)
	if len(r.Starts) != starts || len(r.Entries) != entries || len(r.Ends) != ends || r.Unreadable != 0 || r.ID() != run {
		t.Errorf("%s is %s with %d starts, %d entries, %d ends, %d unreadable, want %d, %d, %d, 0",
			run, r.ID(), len(r.Starts), len(r.Entries), len(r.Ends), r.Unreadable, starts, entries, ends)
	}
	for i, e := range r.Entries {
		if e.Plugin != run || e.Step != i {
			t.Errorf("entry %d of %s is %s %d", i, run, e.Plugin, e.Step)
		}
	}
}

func listed(t *testing.T, s record.Store, n int) []string {
	t.Helper()
	known, err := s.List(n)
	if err != nil {
		t.Fatalf("list: %v", err)
	}
	out := make([]string, len(known))
	for i, k := range known {
		out[i] = k.ID
		if k.Start.Run.RunID != k.ID || k.Start.Run.ThreadID != "t" {
			t.Errorf("%s began as %+v", k.ID, k.Start)
		}
	}
	return out
}

// soon waits until ok reports true: a handle may list late what another one wrote.
func soon(ok func() bool) bool {
	for late := time.After(10 * time.Second); ; {
		if ok() {
			return true
		}
		select {
		case <-time.After(5 * time.Millisecond):
		case <-late:
			return false
		}
	}
}

func roundTrip(t *testing.T, open func(record.Config) record.Store) {
	s := open(record.Config{Source: "s.jsonl"})
	begin(t, s, "run-1")
	want := []record.Entry{full(1), {At: time.Unix(2, 0).UTC(), Verdict: record.NoOpinion}, full(3)}
	for _, e := range want {
		if err := s.Add("run-1", e); err != nil {
			t.Fatal(err)
		}
	}
	last := record.End{At: time.Unix(8, 0).UTC(), Type: "suspended", Code: "c", Detail: "ask", Steps: 4}
	if err := s.End("run-1", last); err != nil {
		t.Fatal(err)
	}
	first := start("run-1")
	first.Schema, first.Source = record.Schema, "s.jsonl"
	for _, s := range []record.Store{s, open(record.Config{})} {
		got := load(t, s, "run-1")
		if !reflect.DeepEqual(got, &record.Run{Starts: []record.Start{first}, Entries: want, Ends: []record.End{last}}) {
			t.Errorf("read %+v", got)
		}
		soon(func() bool { return len(listed(t, s, 5)) == 1 })
		if known, err := s.List(5); err != nil || !reflect.DeepEqual(known, []record.Known{{ID: "run-1", Start: first}}) {
			t.Errorf("listed %+v (%v)", known, err)
		}
	}
}

// runs have nothing of each other, also when they go on side by side.
func runs(t *testing.T, open func(record.Config) record.Store) {
	s := open(record.Config{})
	if got := listed(t, s, 10); len(got) != 0 {
		t.Errorf("an empty store has %q", got)
	}
	for i := range 4 {
		begin(t, s, fmt.Sprint("r", i))
	}
	for step := range 3 {
		for i := range 4 {
			if err := s.Add(fmt.Sprint("r", i), record.Entry{Plugin: fmt.Sprint("r", i), Step: step}); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 3 {
		end(t, s, fmt.Sprint("r", i))
	}
	s = open(record.Config{})
	for i := range 3 {
		expect(t, s, fmt.Sprint("r", i), 1, 3, 1)
	}
	expect(t, s, "r3", 1, 3, 0)
	soon(func() bool { return len(listed(t, s, 4)) == 4 })
	for n, want := range []int{0, 1, 2, 3, 4, 4} {
		got := listed(t, s, n)
		slices.Sort(got)
		if len(slices.Compact(got)) != want {
			t.Errorf("%d runs are %q, want %d", n, got, want)
		}
	}
}

// resumed runs are one run.
func resumed(t *testing.T, open func(record.Config) record.Store) {
	s := open(record.Config{Source: "first"})
	keep(t, s, "r", 2)
	other := open(record.Config{Source: "second"})
	for _, s := range []record.Store{s, other} {
		begin(t, s, "r")
		if err := s.Add("r", record.Entry{Plugin: "again"}); err != nil {
			t.Fatal(err)
		}
		end(t, s, "r")
	}
	r := load(t, s, "r")
	if len(r.Starts) != 3 || len(r.Entries) != 4 || len(r.Ends) != 3 || r.Starts[1].Source != "first" || r.Starts[2].Source != "second" || r.Entries[3].Plugin != "again" {
		t.Errorf("record %+v", r)
	}
	if got := listed(t, s, 10); !slices.Equal(got, []string{"r"}) {
		t.Errorf("runs %q", got)
	}
	if known, err := s.List(1); err != nil || len(known) != 1 || known[0].Start.Source != "first" {
		t.Errorf("it is listed by %+v, not by its beginning (%v)", known, err)
	}
}

// find takes the beginning of an id, and names runs when that is not enough.
func find(t *testing.T, open func(record.Config) record.Store) {
	s := open(record.Config{})
	if _, err := s.Load("x"); !errors.Is(err, record.ErrUnknown) {
		t.Errorf("of an empty store: %v", err)
	}
	for _, id := range []string{"ab1", "ab2", "ab", "c", "A", "a_", "a.b"} {
		keep(t, s, id, 1)
	}
	for id, want := range map[string]string{"ab1": "ab1", "ab": "ab", "c": "c", "a_": "a_", "a.": "a.b", "A": "A"} {
		if r := load(t, s, id); r.ID() != want {
			t.Errorf("%s is %s", id, r.ID())
		}
	}
	if _, err := s.Load("a"); !errors.Is(err, record.ErrAmbiguous) || !strings.Contains(err.Error(), "ab1") || strings.Contains(err.Error(), " c") {
		t.Errorf("ambiguous: %v", err)
	}
	for _, id := range []string{"zz", "", "../c", "/etc/passwd", "a%", "_", "*", "%", "ab1x", "a\x00", "\xff", "' OR 1=1 --", strings.Repeat("x", 100_000)} {
		if _, err := s.Load(id); !errors.Is(err, record.ErrUnknown) || !strings.Contains(err.Error(), "ab1") || len(err.Error()) > 4096 {
			t.Errorf("%.40q: %.400v", id, err)
		}
	}
}

// ids of runs are such that every store can keep them.
func ids(t *testing.T, open func(record.Config) record.Store) {
	s := open(record.Config{})
	for _, id := range []string{
		"", ".", "..", "../x", "a/b", `a\b`, "-x", ".hidden", "_x", strings.Repeat("x", 129), "a\x00", "a b", "é", "a*", "a>", "a\n", "\xff", "'; DROP TABLE x; --",
	} {
		if err := s.Start(start(id)); err == nil {
			t.Errorf("%q was taken", id)
		}
		if err := errors.Join(s.Add(id, record.Entry{}), s.End(id, record.End{})); err != nil {
			t.Errorf("%q: what was not started is not left out: %v", id, err)
		}
	}
	if got := listed(t, s, 10); len(got) != 0 {
		t.Errorf("runs %q", got)
	}
	good := []string{"0", "a.b-c_d", "a", strings.Repeat("x", 128), "a.jsonl"}
	for _, id := range good {
		keep(t, s, id, 2)
	}
	s = open(record.Config{})
	for _, id := range good {
		expect(t, s, id, 1, 2, 1)
	}
}
