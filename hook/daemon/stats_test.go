//go:build linux

package daemon_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/hook"
	"github.com/mortise-dev/mortise/hook/daemon"
	"github.com/mortise-dev/mortise/internal/killtest"
)

// TestStats: what came of events is counted, by event, decision and plugin, and the probe is not.
func TestStats(t *testing.T) {
	t.Parallel()
	p := newPlace(t, counter(), guard())
	p.load = func() error { return nil }
	p.serve(t)
	for i, command := range []string{"ls", "forbidden", "ls"} {
		p.call(t, long, "claude", "PreToolUse", bash(i, command))
	}
	p.call(t, long, "claude", "PreToolUse", bash(2, "ls")) // the same once more
	p.call(t, long, "codex", "PreToolUse", bash(0, "ls"))
	p.call(t, long, "codex", "PreToolUse", []byte("garbage"))
	probe, err := json.Marshal(map[string]any{"session_id": "s", "tool_name": hook.ProbeTool, "tool_input": map[string]any{}})
	if err != nil {
		t.Fatal(err)
	}
	p.call(t, long, "claude", "PreToolUse", probe)

	s, err := daemon.ReadStats(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	if s.Schema != daemon.StatsSchema || s.Since.IsZero() || len(s.Events) != 2 || len(s.Plugins) != 2 {
		t.Fatalf("%+v", s)
	}
	claude, codex := s.Events[0], s.Events[1]
	if d := claude.Decisions; d["deny"] != 1 || d["context"] != 2 || len(d) != 2 || claude.Duplicates != 1 || claude.Errors != 0 || claude.Latency.Count != 3 || claude.Last.IsZero() {
		t.Errorf("%+v", claude)
	}
	if d := codex.Decisions; d["context"] != 1 || d[daemon.DecisionClosed] != 1 || codex.Errors != 1 {
		t.Errorf("%+v", codex)
	}
	for _, pl := range s.Plugins {
		if pl.Phase != "tool_gate" || pl.Latency.Count != 4 || pl.Plugin == "guard" && pl.Gates["block"] != 1 || pl.Plugin == "counter" && pl.Applied["add_context"] != 4 {
			t.Errorf("%+v", pl)
		}
	}
}

// TestStats_rotated: records that are deleted stay in the counts, once.
func TestStats_rotated(t *testing.T) {
	t.Parallel()
	p := newPlace(t, guard())
	p.serve(t)
	line, err := json.Marshal(&hook.Record{At: time.Now(), Dialect: "claude", Event: "Stop", Decision: "none", MS: 3})
	if err != nil {
		t.Fatal(err)
	}
	line = append(line, '\n')
	full := 8<<20/len(line) + 1
	const rounds = 3
	for i := range rounds {
		record := filepath.Join(p.dir, daemon.RecordFile)
		if err := os.WriteFile(record, bytes.Repeat(line, full), 0o600); err != nil {
			t.Fatal(err)
		}
		p.call(t, long, "claude", "PreToolUse", bash(i, "ls"))
		if _, err := os.Stat(record); !errors.Is(err, os.ErrNotExist) {
			t.Fatalf("the record was not moved: %v", err)
		}
	}
	s, err := daemon.ReadStats(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, e := range s.Events {
		got[e.Event] = e.Decisions["none"]
	}
	if got["Stop"] != rounds*full || got["PreToolUse"] != rounds {
		t.Errorf("%v, want %d and %d", got, rounds*full, rounds)
	}
}

// recordSize is the size of a file of records in tests of what moves them.
const recordSize = 2000

// recording adds records, and prints how many there are, until the process is killed.
func recording(_ context.Context, l killtest.Life, say func(words ...any)) error {
	add := daemon.Journal(l.Name, recordSize)
	n, err := recorded(l.Name)
	if err != nil {
		return err
	}
	for {
		add(&hook.Record{At: time.Now(), Dialect: "claude", Event: "Stop", Decision: "none"})
		n++
		say(n)
	}
}

func recorded(dir string) (n int, err error) {
	s, err := daemon.ReadStats(dir)
	if err != nil {
		return 0, err
	}
	for _, e := range s.Events {
		n += e.Decisions["none"]
	}
	return n, nil
}

// TestStats_killed: whenever a daemon is killed, each record is counted once.
func TestStats_killed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	rounds, counted := 30, 0
	if testing.Short() {
		rounds = 10
	}
	for i := range rounds {
		said := killtest.Once(t, "record", dir, strconv.Itoa(counted+1+rand.IntN(40))) //nolint:gosec // a test
		now, err := recorded(dir)
		if err != nil {
			t.Fatal(err)
		}
		last, _ := strconv.Atoi(said[len(said)-1])
		if now != last && now != last+1 { // the last one may not have been printed
			t.Fatalf("kill %d: %d records are counted, and %d were added", i, now, last)
		}
		counted = now
	}
	// The moment between the new totals and the end of the file that they count.
	add := daemon.Journal(dir, recordSize)
	record := filepath.Join(dir, daemon.RecordFile)
	older := func() string {
		names, err := filepath.Glob(record + ".*")
		if err != nil || len(names) != 1 {
			t.Fatalf("%v %v", names, err)
		}
		return names[0]
	}
	name := older()
	data, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for more := 0; more < 2; counted++ {
		add(&hook.Record{At: time.Now(), Dialect: "claude", Event: "Stop", Decision: "none"})
		if _, err := os.Stat(record); err == nil {
			continue
		}
		if more == 0 {
			if err := os.WriteFile(name, data, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		more++
	}
	if now, err := recorded(dir); err != nil || now != counted {
		t.Errorf("%d records are counted, and %d were added: %v", now, counted, err)
	}
	if older() == name {
		t.Errorf("%s is still there", name)
	}
}

// TestStats_moving: a reader counts each record once while a daemon moves them.
func TestStats_moving(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	add := daemon.Journal(dir, recordSize)
	var added atomic.Int64
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for range 600 {
			select {
			case <-stop:
				return
			default:
			}
			add(&hook.Record{At: time.Now(), Dialect: "claude", Event: "Stop", Decision: "none"})
			added.Add(1)
		}
	})
	defer wg.Wait()
	defer close(stop)
	for added.Load() < 600 {
		before := int(added.Load())
		got, err := recorded(dir)
		if after := int(added.Load()) + 1; err != nil || got < before || got > after {
			t.Fatalf("%d records are counted of %d to %d: %v", got, before, after, err)
		}
	}
}

// TestLatency: a quantile is the bound of its bucket.
func TestLatency(t *testing.T) {
	t.Parallel()
	p := newPlace(t, guard())
	var lines []byte
	for _, ms := range []float64{.2, .5, 2, 2, 2, 2, 2, 2, 40, 9000} {
		line, err := json.Marshal(&hook.Record{At: time.Now(), Dialect: "claude", Event: "Stop", Decision: "none", MS: ms})
		if err != nil {
			t.Fatal(err)
		}
		lines = append(append(lines, line...), '\n')
	}
	if err := os.WriteFile(filepath.Join(p.dir, daemon.RecordFile), append(lines, "half a li"...), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := daemon.ReadStats(p.dir)
	if err != nil {
		t.Fatal(err)
	}
	l := s.Events[0].Latency
	for q, want := range map[float64]float64{.2: .5, .5: 2.5, .9: 50, .99: 5000} {
		if got := l.Quantile(q); got != want {
			t.Errorf("%g: %g, want %g", q, got, want)
		}
	}
	var sum daemon.Latency
	sum.Add(&l)
	sum.Add(&l)
	if l.Count != 10 || sum.Count != 20 || sum.Quantile(.5) != 2.5 || int(l.SumMS) != 9052 {
		t.Errorf("%+v %+v", l, sum)
	}
}
