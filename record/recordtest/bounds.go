package recordtest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/mortise-dev/mortise/record"
)

// bytes of a run are bounded; what has no room is counted, and the end has room.
func bytes(t *testing.T, open func(record.Config) record.Store) {
	const limit, entries = 4 << 10, 200
	s := open(record.Config{RunBytes: limit})
	keep(t, s, "r", entries)
	keep(t, s, "other", 2)
	r := load(t, s, "r")
	size := 0
	for i, e := range r.Entries {
		if e.Step != i {
			t.Errorf("entry %d is %d", i, e.Step)
		}
		data, err := record.Line{Entry: &e}.Encode()
		if err != nil {
			t.Fatal(err)
		}
		size += len(data)
	}
	if len(r.Ends) != 1 || r.Ends[0].Dropped == 0 || r.Ends[0].Dropped != entries-len(r.Entries) || size > limit || size < limit/2 {
		t.Errorf("%d entries of %d bytes, ends %+v", len(r.Entries), size, r.Ends)
	}
	expect(t, s, "other", 1, 2, 1)
	kept := len(r.Entries)
	again := open(record.Config{RunBytes: limit})
	keep(t, again, "r", 3)
	r = load(t, s, "r")
	if len(r.Entries) != kept || len(r.Starts) != 2 || len(r.Ends) != 2 || r.Ends[1].Dropped != 3 {
		t.Errorf("it goes on with %d entries, %d starts, ends %+v", len(r.Entries), len(r.Starts), r.Ends)
	}
	wide := open(record.Config{RunBytes: 4 * limit})
	keep(t, wide, "r", 3)
	if r = load(t, s, "r"); len(r.Entries) != kept+3 || len(r.Ends) != 3 || r.Ends[2].Dropped != 0 {
		t.Errorf("with more room it has %d entries, ends %+v", len(r.Entries), r.Ends)
	}
	// Not even beginnings and ends make it grow without end.
	for range 400 {
		keep(t, s, "r", 0)
	}
	if r = load(t, s, "r"); len(r.Starts) > 200 || len(r.Starts) < 10 {
		t.Errorf("it began %d times", len(r.Starts))
	}
}

// line is the size of one entry that no record has room for.
func line(t *testing.T, open func(record.Config) record.Store) {
	s := open(record.Config{})
	begin(t, s, "r")
	for _, size := range []int{record.MaxLine, record.MaxLine / 2} {
		if err := s.Add("r", record.Entry{Error: strings.Repeat("x", size)}); err != nil {
			t.Fatal(err)
		}
	}
	end(t, s, "r")
	r := load(t, open(record.Config{}), "r")
	if len(r.Entries) != 1 || len(r.Entries[0].Error) != record.MaxLine/2 || len(r.Ends) != 1 || r.Ends[0].Dropped != 1 || r.Unreadable != 0 {
		t.Errorf("%d entries, ends %+v, %d unreadable", len(r.Entries), r.Ends, r.Unreadable)
	}
}

// prune keeps the newest when a store is opened.
func prune(t *testing.T, open func(record.Config) record.Store) {
	s := open(record.Config{Keep: 1})
	for i := range 6 {
		keep(t, s, fmt.Sprint("r", i), 1)
	}
	if got := listed(t, s, 10); !slices.Equal(got, []string{"r5", "r4", "r3", "r2", "r1", "r0"}) {
		t.Errorf("before it is opened again: %q", got)
	}
	var kept []string
	pruned := func() bool {
		s = open(record.Config{Keep: 2})
		kept = listed(t, s, 10)
		return slices.Equal(kept, []string{"r5", "r4"})
	}
	if !soon(pruned) {
		t.Errorf("kept %q", kept)
	}
	if _, err := s.Load("r3"); !errors.Is(err, record.ErrUnknown) {
		t.Errorf("a record that went: %v", err)
	}
	keep(t, s, "r3", 2) // begins anew
	expect(t, s, "r3", 1, 2, 1)
	expect(t, s, "r5", 1, 1, 1)
}

// strangers are runs that the handle did not start.
func strangers(t *testing.T, open func(record.Config) record.Store) {
	s, other := open(record.Config{}), open(record.Config{})
	if err := errors.Join(s.Add("never", record.Entry{}), s.End("never", record.End{})); err != nil {
		t.Error(err)
	}
	begin(t, s, "r")
	put(t, s, "r", 2)
	if err := errors.Join(other.Add("r", record.Entry{Plugin: "stranger"}), other.End("r", record.End{})); err != nil {
		t.Error(err)
	}
	expect(t, other, "r", 1, 2, 0)
	end(t, s, "r")
	if err := errors.Join(s.Add("r", record.Entry{Plugin: "late"}), s.End("r", record.End{})); err != nil {
		t.Error(err)
	}
	expect(t, other, "r", 1, 2, 1)
	if got := listed(t, s, 10); !slices.Equal(got, []string{"r"}) {
		t.Errorf("runs %q", got)
	}
}

// handles write side by side, several runs each.
func handles(t *testing.T, open func(record.Config) record.Store) {
	const each, entries = 3, 25
	all := []record.Store{open(record.Config{}), open(record.Config{}), open(record.Config{})}
	var wg sync.WaitGroup
	for h, s := range all {
		for r := range each {
			wg.Go(func() {
				run := fmt.Sprintf("h%d-r%d", h, r)
				err := s.Start(start(run))
				for i := range entries {
					err = errors.Join(err, s.Add(run, record.Entry{Plugin: run, Step: i}))
				}
				if err := errors.Join(err, s.End(run, record.End{})); err != nil {
					t.Errorf("%s: %v", run, err)
				}
			})
		}
	}
	wg.Wait()
	for _, s := range append(all, open(record.Config{})) {
		if !soon(func() bool { return len(listed(t, s, 100)) == len(all)*each }) {
			t.Errorf("runs %q", listed(t, s, 100))
		}
		for h := range all {
			for r := range each {
				expect(t, s, fmt.Sprintf("h%d-r%d", h, r), 1, entries, 1)
			}
		}
	}
}

// oneRun is written to by two handles at once: nothing is lost, and of each handle all is in order.
func oneRun(t *testing.T, open func(record.Config) record.Store) {
	const entries = 40
	all := []record.Store{open(record.Config{}), open(record.Config{})}
	var wg sync.WaitGroup
	for h, s := range all {
		wg.Go(func() {
			err := s.Start(start("r"))
			for i := range entries {
				err = errors.Join(err, s.Add("r", record.Entry{Plugin: fmt.Sprint(h), Step: i}))
			}
			if err := errors.Join(err, s.End("r", record.End{})); err != nil {
				t.Errorf("handle %d: %v", h, err)
			}
		})
	}
	wg.Wait()
	r := load(t, all[0], "r")
	if len(r.Starts) != 2 || len(r.Ends) != 2 || len(r.Entries) != 2*entries || r.Unreadable != 0 {
		t.Fatalf("%d starts, %d ends, %d entries, %d unreadable", len(r.Starts), len(r.Ends), len(r.Entries), r.Unreadable)
	}
	next := map[string]int{}
	for _, e := range r.Entries {
		if e.Step != next[e.Plugin] {
			t.Errorf("handle %s: entry %d came in the place of %d", e.Plugin, e.Step, next[e.Plugin])
		}
		next[e.Plugin] = e.Step + 1
	}
}

// reopen finds all that was kept, also of a run that a process left without an end.
func reopen(t *testing.T, open func(record.Config) record.Store) {
	s := open(record.Config{})
	keep(t, s, "done", 2)
	begin(t, s, "left")
	put(t, s, "left", 2)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(record.Config{})
	expect(t, s, "done", 1, 2, 1)
	expect(t, s, "left", 1, 2, 0)
	if err := s.Add("left", record.Entry{Plugin: "left", Step: 2}); err != nil {
		t.Error(err)
	}
	expect(t, s, "left", 1, 2, 0) // this handle has not started it
	begin(t, s, "left")
	end(t, s, "left")
	expect(t, s, "left", 2, 2, 1)
}

// closed handles fail, and take no other with them.
func closed(t *testing.T, open func(record.Config) record.Store) {
	s, other := open(record.Config{}), open(record.Config{})
	begin(t, s, "r")
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatalf("close: %v", err)
	}
	_, list := s.List(1)
	_, found := s.Load("r")
	for name, err := range map[string]error{"start": s.Start(start("late")), "list": list, "load": found} {
		if err == nil || errors.Is(err, record.ErrUnknown) {
			t.Errorf("%s after close: %v", name, err)
		}
	}
	keep(t, other, "r", 1)
	expect(t, other, "r", 2, 1, 1)
	if !soon(func() bool { return slices.Equal(listed(t, other, 10), []string{"r"}) }) {
		t.Errorf("runs %q", listed(t, other, 10))
	}
}
