package threadtest

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/store"
	"github.com/mortise-dev/mortise/thread"
)

// shelf is a store with decision records, which another process reads.
type shelf struct {
	*world
	other   store.Store
	records *thread.Records
}

// TestRecords checks decision records on a store.
func TestRecords(t *testing.T, open OpenFunc) {
	t.Helper()
	for name, check := range map[string]func(*shelf){
		"round trip": roundTrip, "resumed": resumed, "find": find, "ids": runIDs, "bytes": bounded, "line": line,
		"prune": prune, "strangers": strangers, "one run": oneRun, "late": late, "dropped": dropped, "closed": closed,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			one, other := open(t)
			check(&shelf{&world{T: t, store: one}, other, thread.RecordsOf(other)})
		})
	}
}

// recorder opens a recorder on the first process, or on the other one.
func (s *shelf) recorder(cfg thread.RecordConfig, other bool) *thread.Recorder {
	s.Helper()
	on := s.store
	if other {
		on = s.other
	}
	r, err := thread.NewRecorder(s.Context(), on, cfg)
	s.must(err)
	s.Cleanup(func() {
		if err := r.Close(context.WithoutCancel(s.Context())); err != nil {
			s.Error(err)
		}
	})
	return r
}

func start(run string) thread.RunStart {
	return thread.RunStart{At: time.Unix(1, 0).UTC(), Run: abi.RunIdentity{ThreadID: "t", RunID: run}}
}

// keep writes a record of n decisions.
func (s *shelf) keep(r *thread.Recorder, run string, n int) {
	s.Helper()
	s.must(r.Start(start(run)))
	s.put(r, run, n)
	s.must(r.End(run, thread.RunEnd{At: time.Unix(9, 0).UTC(), Type: "natural_end", Steps: 3}))
}

func (s *shelf) put(r *thread.Recorder, run string, n int) {
	s.Helper()
	for i := range n {
		s.must(r.Add(run, thread.Decision{Plugin: run, Step: i}))
	}
}

func (s *shelf) load(run string) *thread.Record {
	s.Helper()
	r, err := s.records.In(s.Context(), "t", run)
	s.must(err)
	return r
}

// expect checks the numbers of a record, and that its decisions are in order.
func (s *shelf) expect(run string, starts, entries, ends int) {
	s.Helper()
	r := s.load(run)
	if len(r.Starts) != starts || len(r.Entries) != entries || len(r.Ends) != ends || r.Unreadable != 0 || r.ID() != run {
		s.Errorf("%s is %s with %d starts, %d entries, %d ends, %d unreadable, want %d, %d, %d, 0",
			run, r.ID(), len(r.Starts), len(r.Entries), len(r.Ends), r.Unreadable, starts, entries, ends)
	}
	for i, e := range r.Entries {
		if e.Plugin != run || e.Step != i {
			s.Errorf("entry %d of %s is %s %d", i, run, e.Plugin, e.Step)
		}
	}
}

func (s *shelf) listed(want ...string) {
	s.Helper()
	var got []string
	if !soon(func() bool {
		known, err := s.records.List(s.Context(), 100)
		s.must(err)
		got = nil
		for _, k := range known {
			got = append(got, k.ID)
		}
		return slices.Equal(got, want)
	}) {
		s.Errorf("runs are %q, want %q", got, want)
	}
}

func roundTrip(s *shelf) {
	r := s.recorder(thread.RecordConfig{Source: "s.jsonl"}, false)
	want := []thread.Decision{{
		At: time.Unix(1, 5).UTC(), Phase: abi.ToolGate, Step: 1, Plugin: "guard", Handler: "h", CallID: "c", Tool: "bash",
		Verdict: thread.Overridden, Attempt: 2, DurationMS: 1.5, Saw: &thread.Saw{Messages: 1, From: 4, Total: 5, Revision: 6},
		Applied: []thread.Change{{What: "set", Target: "k", Note: "</n>\n\u2028", Overridden: true}}, Refused: []thread.Refusal{{What: "w", Reason: "r"}},
		Gate:       &thread.Gate{Action: abi.GateBlock, Reason: "no", Ticket: "t1", Overridden: true},
		DeferredBy: "p", Error: "e", Quarantined: true,
	}, {At: time.Unix(2, 0).UTC(), Verdict: thread.NoOpinion}}
	s.must(r.Start(start("run-1")))
	for _, d := range want {
		s.must(r.Add("run-1", d))
	}
	last := thread.RunEnd{At: time.Unix(8, 0).UTC(), Type: "suspended", Code: "c", Detail: "ask", Steps: 4}
	s.must(r.End("run-1", last))
	first := start("run-1")
	first.Schema, first.Source = thread.RecordSchema, "s.jsonl"
	if got := s.load("run-1"); !reflect.DeepEqual(got, &thread.Record{Starts: []thread.RunStart{first}, Entries: want, Ends: []thread.RunEnd{last}}) {
		s.Errorf("read %+v", got)
	}
	s.listed("run-1")
	if known, err := s.records.List(s.Context(), 5); err != nil || !reflect.DeepEqual(known, []thread.Known{{ID: "run-1", Start: first}}) {
		s.Errorf("listed %+v (%v)", known, err)
	}
	alone := start("alone") // a run without a thread
	alone.Run.ThreadID = ""
	s.must(r.Start(alone), r.End("alone", last))
	s.listed("alone", "run-1")
	if got, err := s.records.Load(s.Context(), "alone"); err != nil || got.ID() != "alone" {
		s.Errorf("read %+v (%v)", got, err)
	}
}

// resumed runs are one run, also those that another process continues.
func resumed(s *shelf) {
	r := s.recorder(thread.RecordConfig{Source: "first"}, false)
	s.keep(r, "r", 2)
	for _, r := range []*thread.Recorder{r, s.recorder(thread.RecordConfig{Source: "second"}, true)} {
		s.must(r.Start(start("r")), r.Add("r", thread.Decision{Plugin: "again"}), r.End("r", thread.RunEnd{}))
	}
	got := s.load("r")
	if len(got.Starts) != 3 || len(got.Entries) != 4 || len(got.Ends) != 3 || got.Starts[1].Source != "first" || got.Starts[2].Source != "second" || got.Entries[3].Plugin != "again" {
		s.Errorf("record %+v", got)
	}
	s.listed("r")
	if known, err := s.records.List(s.Context(), 1); err != nil || len(known) != 1 || known[0].Start.Source != "first" {
		s.Errorf("listed %+v, want the beginning (%v)", known, err)
	}
}

// find takes the beginning of an id, and names runs when that is not enough.
func find(s *shelf) {
	if _, err := s.records.Load(s.Context(), "x"); !errors.Is(err, thread.ErrNoRecord) {
		s.Errorf("of an empty store: %v", err)
	}
	r := s.recorder(thread.RecordConfig{}, false)
	for _, id := range []string{"ab1", "ab2", "ab", "c", "A", "a_", "a.b"} {
		s.keep(r, id, 1)
	}
	s.listed("a.b", "a_", "A", "c", "ab", "ab2", "ab1")
	for id, want := range map[string]string{"ab1": "ab1", "ab": "ab", "c": "c", "a_": "a_", "a.": "a.b", "A": "A"} {
		if got, err := s.records.Load(s.Context(), id); err != nil || got.ID() != want {
			s.Errorf("%s is %+v (%v)", id, got, err)
		}
	}
	if _, err := s.records.Load(s.Context(), "a"); !errors.Is(err, thread.ErrAmbiguous) || !strings.Contains(err.Error(), "ab1") || strings.Contains(err.Error(), " c") {
		s.Errorf("ambiguous: %v", err)
	}
	for _, id := range []string{"zz", "", "../c", "/etc/passwd", "a%", "_", "*", "%", "ab1x", "a\x00", "\xff", "' OR 1=1 --", strings.Repeat("x", 100_000)} {
		var err error
		if !soon(func() bool {
			_, err = s.records.Load(s.Context(), id)
			return errors.Is(err, thread.ErrNoRecord) && strings.Contains(err.Error(), "ab1") && len(err.Error()) < 4096
		}) {
			s.Errorf("%.40q: %.400v", id, err)
		}
	}
}

// runIDs are such that every store can keep them.
func runIDs(s *shelf) {
	r := s.recorder(thread.RecordConfig{}, false)
	for _, id := range []string{
		"", ".", "..", "../x", "a/b", `a\b`, "-x", ".hidden", "_x", strings.Repeat("x", 129), "a\x00", "a b", "é", "a*", "a>", "a\n", "\xff", "'; DROP TABLE x; --",
	} {
		if err := r.Start(start(id)); err == nil {
			s.Errorf("%q was accepted", id)
		}
		s.must(r.Add(id, thread.Decision{}), r.End(id, thread.RunEnd{}))
	}
	s.listed()
	for _, id := range []string{"0", "a.b-c_d", "a", strings.Repeat("x", 128), "a.jsonl"} {
		s.keep(r, id, 2)
		s.expect(id, 1, 2, 1)
	}
}

// bounded is the size of a record; what has no room is counted, and the end has room.
func bounded(s *shelf) {
	const limit, entries = 4 << 10, 200
	r := s.recorder(thread.RecordConfig{RunBytes: limit}, false)
	s.keep(r, "r", entries)
	s.keep(r, "other", 2)
	got := s.load("r")
	kept := len(got.Entries)
	if len(got.Ends) != 1 || kept < 20 || got.Ends[0].Dropped != entries-kept {
		s.Errorf("%d entries, ends %+v", kept, got.Ends)
	}
	s.expect("other", 1, 2, 1)
	s.keep(s.recorder(thread.RecordConfig{RunBytes: limit}, true), "r", 3)
	if got = s.load("r"); len(got.Entries) > kept+1 || len(got.Starts) != 2 || len(got.Ends) != 2 || got.Ends[1].Dropped < 2 {
		s.Errorf("it continues with %d entries, %d starts, ends %+v", len(got.Entries), len(got.Starts), got.Ends)
	}
	r = s.recorder(thread.RecordConfig{RunBytes: limit, Source: strings.Repeat("x", thread.EndRoom/16)}, false)
	for range 40 { // not even beginnings and ends make it grow without end
		s.keep(r, "r", 0)
	}
	if got = s.load("r"); len(got.Starts) > 25 || len(got.Starts) < 10 {
		s.Errorf("it began %d times", len(got.Starts))
	}
}

// line is the size of one entry that no record has room for.
func line(s *shelf) {
	r := s.recorder(thread.RecordConfig{}, false)
	s.must(r.Start(start("r")))
	for _, size := range []int{thread.MaxLine, thread.MaxLine / 2} {
		s.must(r.Add("r", thread.Decision{Error: strings.Repeat("x", size)}))
	}
	s.must(r.End("r", thread.RunEnd{}))
	got := s.load("r")
	if len(got.Entries) != 1 || len(got.Entries[0].Error) != thread.MaxLine/2 || len(got.Ends) != 1 || got.Ends[0].Dropped != 1 || got.Unreadable != 0 {
		s.Errorf("%d entries, ends %+v, %d unreadable", len(got.Entries), got.Ends, got.Unreadable)
	}
}

// prune keeps the newest when a store is opened.
func prune(s *shelf) {
	r := s.recorder(thread.RecordConfig{Keep: 1}, false)
	for i := range 6 {
		s.keep(r, fmt.Sprint("r", i), 1)
	}
	s.listed("r5", "r4", "r3", "r2", "r1", "r0") // before it is opened again
	s.recorder(thread.RecordConfig{Keep: 2}, false)
	s.listed("r5", "r4")
	if _, err := s.records.In(s.Context(), "t", "r3"); !errors.Is(err, thread.ErrNoRecord) {
		s.Errorf("a removed record: %v", err)
	}
	s.keep(r, "r3", 2) // begins anew
	s.expect("r3", 1, 2, 1)
	s.expect("r5", 1, 1, 1)
}

// strangers are runs that the recorder did not start.
func strangers(s *shelf) {
	r, other := s.recorder(thread.RecordConfig{}, false), s.recorder(thread.RecordConfig{}, true)
	s.must(r.Add("never", thread.Decision{}), r.End("never", thread.RunEnd{}), r.Start(start("r")))
	s.put(r, "r", 2)
	s.must(other.Add("r", thread.Decision{Plugin: "stranger"}), other.End("r", thread.RunEnd{}), r.End("r", thread.RunEnd{}))
	s.expect("r", 1, 2, 1)
	s.must(r.Add("r", thread.Decision{Plugin: "late"}), r.End("r", thread.RunEnd{}))
	s.expect("r", 1, 2, 1)
	s.listed("r")
}

// oneRun is written by two processes at once: nothing is lost, and of each all is in order.
func oneRun(s *shelf) {
	const entries = 40
	var wg sync.WaitGroup
	for h, r := range []*thread.Recorder{s.recorder(thread.RecordConfig{}, false), s.recorder(thread.RecordConfig{}, true)} {
		wg.Go(func() {
			err := r.Start(start("r"))
			for i := range entries {
				err = errors.Join(err, r.Add("r", thread.Decision{Plugin: fmt.Sprint(h), Step: i}))
			}
			if err := errors.Join(err, r.End("r", thread.RunEnd{})); err != nil {
				s.Errorf("process %d: %v", h, err)
			}
		})
	}
	wg.Wait()
	got, next := s.load("r"), map[string]int{}
	for _, e := range got.Entries {
		if e.Step != next[e.Plugin] {
			s.Errorf("process %s: %d comes when %d is next", e.Plugin, e.Step, next[e.Plugin])
		}
		next[e.Plugin]++
	}
	if len(got.Starts) != 2 || len(got.Entries) != 2*entries || len(got.Ends) != 2 {
		s.Errorf("%d starts, %d entries, %d ends", len(got.Starts), len(got.Entries), len(got.Ends))
	}
}

// late lines are written without an end too, and at once when there are many.
func late(s *shelf) {
	r := s.recorder(thread.RecordConfig{}, false)
	s.must(r.Start(start("r")))
	s.expect("r", 1, 0, 0)
	s.put(r, "r", 3)
	if !soon(func() bool { return len(s.load("r").Entries) == 3 }) {
		s.Error("lines are not written")
	}
	s.must(r.Start(start("big")), r.Add("big", thread.Decision{Plugin: "big", Error: strings.Repeat("x", 100_000)}))
	s.expect("big", 1, 1, 0)
	s.must(r.Start(start("end")))
	s.put(r, "end", 2)
	s.must(r.Close(s.Context()))
	s.expect("end", 1, 2, 0)
}

// dropped threads take their records with them, and lines that come later make no new one.
func dropped(s *shelf) {
	r := s.recorder(thread.RecordConfig{}, false)
	s.keep(r, "done", 2)
	s.must(r.Start(start("open")))
	s.listed("open", "done")
	dropThread(s.world, "t")
	s.listed()
	s.put(r, "open", 3)
	s.must(r.End("open", thread.RunEnd{}))
	for _, run := range []string{"done", "open"} {
		if _, err := s.records.In(s.Context(), "t", run); !errors.Is(err, thread.ErrNoRecord) {
			s.Errorf("%s of a dropped thread: %v", run, err)
		}
	}
	s.listed()
}

// closed recorders fail, and affect no other.
func closed(s *shelf) {
	r, other := s.recorder(thread.RecordConfig{}, false), s.recorder(thread.RecordConfig{}, true)
	s.must(r.Start(start("r")), r.Close(s.Context()), r.Close(s.Context()))
	if err := r.Start(start("late")); err == nil {
		s.Error("start after close")
	}
	s.must(r.Add("r", thread.Decision{}), r.End("r", thread.RunEnd{}))
	s.keep(other, "r", 1)
	s.expect("r", 2, 1, 1)
	s.listed("r")
}
