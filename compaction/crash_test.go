package compaction_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
)

var errCrash = errors.New("the process is dead")

// dying is a store whose process dies at a write: before it, or right after it
// landed. Then nothing gets through any more.
type dying struct {
	compaction.Store

	mu     sync.Mutex
	writes int
	at     int // the write, 0 for never
	landed bool
	dead   bool
}

func (s *dying) Load(thread string) (compaction.State, uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return compaction.State{}, 0, errCrash
	}
	return s.Store.Load(thread)
}

func (s *dying) Swap(thread string, rev uint64, st compaction.State) (uint64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes++
	if s.writes == s.at {
		s.dead = true
		if s.landed {
			if _, err := s.Store.Swap(thread, rev, st); err != nil {
				return 0, err
			}
		}
	}
	if s.dead {
		return 0, errCrash
	}
	return s.Store.Swap(thread, rev, st)
}

func (s *dying) Record(e compaction.Event) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.dead {
		return errCrash
	}
	return s.Store.Record(e)
}

// life drives a thread from the reservation to the swap, and stops where its
// process dies: after so many stages, or at a write.
func life(t *testing.T, c *compaction.Compactor, d *desk, log []abi.Message, stages int) {
	t.Helper()
	var notices []abi.Notice
	for i, stage := range []func(){
		func() { c.Consider(t.Context(), thread, log) },
		func() { notices = d.run() },
		func() {
			for _, n := range notices {
				c.Consume(thread, log, n)
			}
		},
	} {
		if i < stages {
			stage()
		}
	}
}

// Whatever the point between reserve and swap at which the process dies: the next
// one finds the history whole, reports what was under way, finishes it or tries it
// again, and never swaps twice.
func TestCrashAtEveryPoint(t *testing.T) {
	t.Parallel()
	type point struct {
		name   string
		write  int
		landed bool
		stages int
		told   string // what the next process says, empty for nothing
		asked  int    // how often summaries are bought in all
	}
	points := []point{
		{"before the reservation is written", 1, false, 3, "", 1},
		{"when it is written", 1, true, 3, "it is tried again", 1},
		{"before the task begins", 0, false, 1, "it is tried again", 1},
		{"before the summary is written", 2, false, 3, "it is tried again", 2},
		{"when the summary is written", 2, true, 3, "is swapped in", 1},
		{"before the notice is read", 0, false, 2, "is swapped in", 1},
		{"before the swap", 3, false, 3, "is swapped in", 1},
		{"when it is swapped", 3, true, 3, "", 1},
		{"after the swap", 0, false, 3, "", 1},
	}
	for _, p := range points {
		t.Run(p.name, func(t *testing.T) {
			t.Parallel()
			memory, d, asked := compaction.NewMemory(), newDesk(), 0
			store := &dying{Store: memory, at: p.write, landed: p.landed}
			summarizer := scripted(func(context.Context, *abi.SummarizeRequest) (*abi.Summary, error) {
				asked++
				return &abi.Summary{Text: fmt.Sprintf("summary %d", asked)}, nil
			})
			log := filler()
			first := d.at(t, summarizer, func(cfg *compaction.Config) { cfg.Store, cfg.Owner = store, "first" })
			life(t, first, d, log, p.stages)
			store.mu.Lock()
			store.dead = true
			store.mu.Unlock()

			next := newDesk()
			next.pass(time.Second)
			second := next.at(t, summarizer, func(cfg *compaction.Config) { cfg.Store, cfg.Owner = memory, "second" })
			checkView(t, log, second.View(thread, log), newest(second))
			log = append(log, assistant("a3", "an answer"), user("u4", "more"))
			for range 3 {
				next.pass(2 * time.Second)
				life(t, second, next, log, 3)
			}
			if asked != p.asked || second.Total(thread) != 1 || len(second.Markers(thread)) != 1 || second.Pending(thread) {
				t.Errorf("%d summaries bought, %d swapped, want %d and 1; told %v", asked, second.Total(thread), p.asked, next.kinds())
			}
			checkView(t, log, second.View(thread, log), newest(second))
			i := slices.IndexFunc(memory.Events(thread), func(e compaction.Event) bool { return e.Kind == compaction.EventRecovered })
			if (i >= 0) != (p.told != "") {
				t.Fatalf("recovered at %d of %v", i, next.kinds())
			}
			if i >= 0 {
				e := memory.Events(thread)[i]
				if !strings.Contains(e.Reason, p.told) || !strings.Contains(e.Reason, "attempt 1") || e.AttemptID == "" {
					t.Errorf("told %+v", e)
				}
			}
			// Both processes show the same.
			third := newDesk().at(t, summarizer, func(cfg *compaction.Config) { cfg.Store = memory })
			if !reflect.DeepEqual(third.View(thread, log), second.View(thread, log)) {
				t.Error("the next process shows another view")
			}
			if !third.Undo(thread) || !reflect.DeepEqual(third.View(thread, log), log) {
				t.Error("undo did not bring the log back")
			}
		})
	}
}

// A process that dies each time it tries does not try for ever.
func TestCrashLoopIsBounded(t *testing.T) {
	t.Parallel()
	memory, clock := compaction.NewMemory(), newDesk()
	log, started := filler(), 0
	for range 20 {
		clock.pass(10 * time.Minute)
		d := newDesk()
		c := d.at(t, says("never read"), func(cfg *compaction.Config) {
			cfg.Store, cfg.Now, cfg.Quota.MaxAttempts = memory, clock.clock, 3
		})
		c.View(thread, log)
		clock.pass(10 * time.Minute)
		if c.Consider(t.Context(), thread, log) {
			started++
		}
	}
	if started != 3 {
		t.Errorf("%d attempts, want 3", started)
	}
	// A day later it may try again.
	clock.pass(25 * time.Hour)
	d := newDesk()
	c := d.at(t, says("short"), func(cfg *compaction.Config) { cfg.Store, cfg.Now, cfg.Quota.MaxAttempts = memory, clock.clock, 3 })
	life(t, c, d, log, 3)
	if c.Total(thread) != 1 {
		t.Errorf("given up for ever: %v", d.last(t).Decision)
	}
}

// A process that was thought dead comes back with its summary.
func TestTakenOver(t *testing.T) {
	t.Parallel()
	memory, log := compaction.NewMemory(), filler()
	d1, d2 := newDesk(), newDesk()
	first := d1.at(t, says("from the first"), func(cfg *compaction.Config) { cfg.Store, cfg.Owner = memory, "first" })
	first.Consider(t.Context(), thread, log)
	d2.pass(time.Minute)
	second := d2.at(t, says("from the second"), func(cfg *compaction.Config) { cfg.Store, cfg.Owner = memory, "second" })
	second.Consider(t.Context(), thread, log)
	d2.pass(time.Second)
	life(t, second, d2, log, 3)
	for _, n := range d1.run() {
		first.Consume(thread, log, n)
	}
	if e := d1.last(t); e.Kind != compaction.EventRefused && e.Kind != compaction.EventStale || e.Reason == "" {
		t.Errorf("the first one said %+v", e)
	}
	for _, c := range []*compaction.Compactor{first, second} {
		if m := c.Markers(thread); len(m) != 1 || m[0].Summary != "from the second" || c.Total(thread) != 1 {
			t.Errorf("markers %+v", m)
		}
	}
	if !reflect.DeepEqual(first.View(thread, log), second.View(thread, log)) {
		t.Error("they show different views")
	}
}

// moody is a store that fails at random, sometimes after the write landed.
type moody struct {
	compaction.Store
	*rand.Rand
	off bool
}

var errMoody = errors.New("the disk is moody")

func (s *moody) Load(thread string) (compaction.State, uint64, error) {
	if !s.off && s.IntN(4) == 0 {
		return compaction.State{}, 0, errMoody
	}
	return s.Store.Load(thread)
}

func (s *moody) Swap(thread string, rev uint64, st compaction.State) (uint64, error) {
	switch n := s.IntN(6); {
	case s.off || n > 2:
		return s.Store.Swap(thread, rev, st)
	case n == 0:
		if _, err := s.Store.Swap(thread, rev, st); err != nil {
			return 0, err
		}
	}
	return 0, errMoody
}

func (s *moody) Record(e compaction.Event) error {
	if !s.off && s.IntN(4) == 0 {
		return errMoody
	}
	return s.Store.Record(e)
}

// Random conversations on a store that fails at random, with restarts in between:
// nothing is summarized twice, nothing is lost, and it continues when the store does.
func TestMoodyStore(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testskip.Rounds(8, 2)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			moodily(t, seed)
		})
	}
}

func moodily(t *testing.T, seed uint64) {
	t.Helper()
	g, memory := newTalk(seed), compaction.NewMemory()
	store := &moody{Store: memory, Rand: g.Rand}
	clock := newDesk()
	var d *desk
	var c *compaction.Compactor
	start := func() {
		d = newDesk()
		c = d.at(t, says("short"), func(cfg *compaction.Config) {
			cfg.Store, cfg.Now = store, clock.clock
			cfg.Policy = compaction.Policy{
				WindowTokens: 1 << 30, ReserveTokens: 1, ThresholdTokens: 1000, KeepRecentTokens: 200,
				MinRangeTokens: 200, SummaryTokens: 50, BreakerFailures: -1,
			}
		})
	}
	start()
	for i := range 40 {
		store.off = i >= 32
		g.on(10)
		clock.pass(10 * time.Minute)
		frozen, err := json.Marshal(g.log)
		if err != nil {
			t.Fatal(err)
		}
		life(t, c, d, g.log, 3)
		c.View(thread, g.log)
		if g.IntN(3) == 0 && !store.off {
			c.Undo(thread)
		}
		checkView(t, g.log, c.View(thread, g.log), newest(c))
		if now, err := json.Marshal(g.log); err != nil || !bytes.Equal(now, frozen) {
			t.Fatal("the log was changed")
		}
		if g.IntN(5) == 0 {
			start()
		}
	}
	state, _, err := memory.Load(thread)
	if err != nil || state.Total == 0 || len(state.Markers) == 0 {
		t.Fatalf("nothing came of it: %+v, %v", state, err)
	}
	seen := make(map[string]bool)
	for i, m := range state.Markers {
		if seen[m.ID] || i > 0 && m.FromID != state.Markers[0].FromID {
			t.Errorf("marker %d is there twice, or does not continue from the one before: %+v", i, m)
		}
		seen[m.ID] = true
	}
	if c.Pending(thread) {
		t.Error("something is still under way")
	}
}

// The three fields of the reservation that others read keep their names and values.
// reservedBeforeSpawn looks into the store when the task is spawned: a process that
// ends then must leave the reservation behind.
func reservedBeforeSpawn(t *testing.T) {
	t.Helper()
	d, memory := newDesk(), compaction.NewMemory()
	c := d.at(t, says("x"), func(cfg *compaction.Config) {
		cfg.Store, cfg.Owner = memory, "p1"
		cfg.Spawn = func(ctx context.Context, thread, id, kind, what string, body func(context.Context) error) error {
			s, _, err := memory.Load(thread)
			if f := s.InFlight; err != nil || f == nil || f.ID != id || f.Owner != "p1" || f.Attempt != 1 || f.BoundaryID != "a2" {
				t.Errorf("the store holds %+v (%v) when the task is spawned", s.InFlight, err)
			}
			return d.spawn(ctx, thread, id, kind, what, body)
		}
	})
	if !c.Consider(t.Context(), thread, filler()) {
		t.Error("not started")
	}
}

func inFlightRoundTrip(t *testing.T) {
	t.Helper()
	in := compaction.State{InFlight: &compaction.InFlight{
		ID: "bg_77", Owner: "p1", Attempt: 2, BoundaryID: "msg-9", StartedMS: 4242, DeadlineMS: 5000,
		Range: compaction.Range{FromID: "msg-1", ToID: "msg-9", To: 8, Tokens: 7, ReadFiles: []string{"a"}},
	}}
	out, err := json.Marshal(in)
	if err != nil {
		t.Fatal(err)
	}
	var plain struct {
		InFlight map[string]any `json:"in_flight"`
	}
	var back compaction.State
	if err := errors.Join(json.Unmarshal(out, &plain), json.Unmarshal(out, &back)); err != nil || !reflect.DeepEqual(in, back) {
		t.Errorf("%s became %+v (%v)", out, back.InFlight, err)
	}
	if p := plain.InFlight; p["task_id"] != "bg_77" || p["boundary_message_id"] != "msg-9" || p["started_at_ms"] != 4242.0 {
		t.Errorf("wrote %s", out)
	}
	reservedBeforeSpawn(t)
	if out, err := json.Marshal(compaction.State{}); err != nil || string(out) != `{"total":0}` {
		t.Errorf("an empty state is %s (%v)", out, err)
	}
}

// A process that only looks at a thread takes nothing over: the compaction that another one has under way lands.
func TestReaderTakesNothingOver(t *testing.T) {
	t.Parallel()
	memory, log := compaction.NewMemory(), filler()
	d1, d2 := newDesk(), newDesk()
	first := d1.at(t, says("from the first"), func(cfg *compaction.Config) { cfg.Store, cfg.Owner = memory, "first" })
	reader := d2.at(t, says("from the reader"), func(cfg *compaction.Config) { cfg.Store, cfg.Owner = memory, "reader" })
	first.Consider(t.Context(), thread, log)
	reader.View(thread, log)
	reader.Tokens(thread, log)
	if len(reader.Markers(thread)) != 0 || reader.Total(thread) != 0 || len(d2.kinds()) != 0 {
		t.Errorf("the reader says %v", d2.kinds())
	}
	for _, n := range d1.run() {
		first.Consume(thread, log, n)
	}
	if m := first.Markers(thread); len(m) != 1 || m[0].Summary != "from the first" {
		t.Errorf("markers %+v, %v", m, d1.kinds())
	}
}
