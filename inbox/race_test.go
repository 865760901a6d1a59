package inbox_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/inbox"
	"github.com/mortise-dev/mortise/phases"
)

// TestNoLostWakeOfARun ends tasks at every moment of the runs that own them: before, in
// the middle, between the last look and the end, while a run waits in the process,
// while it comes to its end, fails or is cancelled. Whatever the order, the end of each
// task stands in the conversation once, the model has the last word, and no sender had to
// wait for the second wake.
func TestNoLostWakeOfARun(t *testing.T) {
	t.Parallel()
	for round := range 4 {
		t.Run(fmt.Sprint(round), func(t *testing.T) {
			t.Parallel()
			for i := range 500 {
				seed := uint64(1000*round + i)
				synctest.Test(t, func(t *testing.T) { runRace(t, seed) })
			}
		})
	}
}

// dice are safe for concurrent use.
type dice struct {
	mu  sync.Mutex
	rng *rand.Rand
}

func (d *dice) roll(n int) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.rng.IntN(n)
}

// pause waits up to 3 ms, or not at all.
func (d *dice) pause() {
	if n := d.roll(4); n > 0 {
		<-time.After(time.Duration(n) * time.Millisecond)
	}
}

// slow is a plugin that makes some phases take their time.
type slow struct{ *dice }

func (slow) Describe() abi.Description {
	return abi.Description{Name: "slow", Version: "1", ABI: abi.VersionRange{Min: 1, Max: 1}, Hooks: []abi.Hook{
		{Phase: abi.RunStart, Mode: abi.ModeObserve}, {Phase: abi.StepEnd, Mode: abi.ModeObserve}, {Phase: abi.RunEnd, Mode: abi.ModeObserve},
	}}
}

func (s slow) OnPhase(context.Context, *abi.Event) (*abi.Reply, error) {
	s.pause()
	return nil, nil
}

func runRace(t *testing.T, seed uint64) {
	t.Helper()
	d := &dice{rng: rand.New(rand.NewPCG(seed, 1))}
	var f *office
	class := []background.Class{background.Blocking, background.Detached}[d.roll(2)]
	brain := &model{before: d.pause}
	if d.roll(4) == 0 {
		brain.script = []any{errors.New("overloaded")}
	} else {
		brain.script = []any{calls("work", "work")}
	}
	f = newOffice(t, officeParts{
		model: brain, plugin: []phases.Plugin{slow{d}},
		agent: agent.Config{Checkpoints: agent.NewMemory(), Limits: agent.Limits{WaitLimit: 100 * time.Hour}, Profile: agent.Profile{Tools: tools{"work": func(context.Context, abi.ToolCall) (string, error) {
			d.pause()
			return "ok", nil
		}}}},
		// A wake that is lost shows. One that failed is tried again after the first pause.
		out: inbox.Config{Debounce: time.Millisecond, Retry: time.Hour, MaxRetry: 2 * time.Hour},
	})
	begin := time.Now()
	var all sync.WaitGroup
	for i := range 3 {
		all.Go(func() {
			for range i {
				d.pause()
			}
			_, err := f.Spawn(t.Context(), background.Spec{Thread: "a", Type: "task", Class: class, Body: func(context.Context, *background.Task) (any, error) {
				d.pause()
				return "done", nil
			}})
			if err != nil {
				t.Error(err)
			}
		})
	}
	req := asked("go")
	req.Wait = d.roll(2) == 0
	_, failed := f.agent.Run(t.Context(), req)
	if errors.Is(failed, agent.ErrThreadBusy) {
		failed = nil // a wake was first
	}
	all.Wait()
	if err := f.Wait(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	for f.out.Waiting("a") > 0 {
		<-time.After(time.Millisecond)
	}
	synctest.Wait()
	took, log := time.Since(begin), f.agent.Thread("a").Messages()
	var text strings.Builder
	for i := range log {
		text.WriteString(log[i].Text() + "\n")
	}
	for i := range 3 {
		if n := strings.Count(text.String(), fmt.Sprintf(`task_id="t%d"`, i)); n != 1 {
			t.Errorf("the end of t%d stands %d times", i, n)
		}
	}
	if last := log[len(log)-1]; last.Role != abi.RoleAssistant {
		t.Errorf("the last word is the %s's", last.Role)
	}
	if failures := len(brain.script) == 0 && failed != nil; took > time.Minute && !failures {
		t.Errorf("it took %s: a wake was lost", took)
	}
	if t.Failed() {
		t.Fatalf("seed %d, wait %v, class %s, error %v: %s", seed, req.Wait, class, failed, text.String())
	}
	f.close(t)
}
