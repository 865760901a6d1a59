package agent_test

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/phases"
)

// TestAnyRunKeepsItsPromises runs random worlds. MORTISE_SEED repeats one of
// them, MORTISE_WORLDS is their number.
func TestAnyRunKeepsItsPromises(t *testing.T) {
	t.Parallel()
	if s := os.Getenv("MORTISE_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		liveIn(t, seed)
		return
	}
	worlds := 1500
	if s := os.Getenv("MORTISE_WORLDS"); s != "" {
		var err error
		if worlds, err = strconv.Atoi(s); err != nil {
			t.Fatal(err)
		}
	}
	first := rand.Uint64()
	var tally tally
	for i := range worlds {
		seed := first + uint64(i)
		tally.add(liveIn(t, seed))
		if t.Failed() {
			t.Fatalf("world %d of %d", i, worlds)
		}
	}
	t.Logf("first seed %d: %+v", first, tally)
	if min(tally.natural, tally.stopped, tally.blocked, tally.cancelled, tally.failed) == 0 && worlds >= 1000 {
		t.Errorf("some kind of end never came up, so the worlds are too tame: %+v", tally)
	}
}

// tally counts how runs ended.
type tally struct{ runs, natural, stopped, blocked, suspended, cancelled, failed int }

func (y *tally) add(o tally) {
	y.runs += o.runs
	y.natural += o.natural
	y.stopped += o.stopped
	y.blocked += o.blocked
	y.suspended += o.suspended
	y.cancelled += o.cancelled
	y.failed += o.failed
}

func (y *tally) count(end agent.TerminationType) {
	y.runs++
	switch end {
	case agent.NaturalEnd:
		y.natural++
	case agent.Stopped:
		y.stopped++
	case agent.Blocked:
		y.blocked++
	case agent.Suspended:
		y.suspended++
	case agent.Cancelled:
		y.cancelled++
	case agent.Failed:
		y.failed++
	}
}

// world is one thread with everything that is random about it.
type world struct {
	rng    *rand.Rand
	seed   uint64
	cancel context.CancelFunc
	mu     sync.Mutex
	// said must stand in the log, once each.
	said   []string
	events []agent.Event
	number int
}

// liveIn makes three runs on one thread and checks each.
func liveIn(t *testing.T, seed uint64) tally {
	t.Helper()
	defer func() {
		if t.Failed() { // also when a check ended the test
			t.Logf("repeat this world with MORTISE_SEED=%d", seed)
		}
	}()
	w := &world{rng: rand.New(rand.NewPCG(seed, 1)), seed: seed}
	var plugins []phases.Plugin
	for i := range w.rng.IntN(4) {
		plugins = append(plugins, w.plugin(i))
	}
	rt, err := phases.New(phases.Config{Plugins: plugins, HookTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	a, err := agent.New(agent.Config{
		Profile: agent.Profile{Model: w, Phases: rt, Tools: w}, Inference: agent.Inference{Retry: llm.Retry{MaxRetries: -1}}, Limits: agent.Limits{MaxRounds: 1 + w.rng.IntN(6)}, Notifications: agent.Notifications{InboxDepth: 64},
		Listen: func(_ context.Context, e agent.Event) { w.hear(e) },
	})
	if err != nil {
		t.Fatal(err)
	}
	var tally tally
	for range 3 {
		w.events = nil
		ctx, cancel := context.WithCancel(t.Context())
		w.cancel = cancel
		if w.chance(10) {
			cancel()
		}
		text := w.text("user")
		w.keep(text)
		notice := w.text("task")
		if err := a.Deliver(t.Context(), "t", abi.Notice{Kind: abi.NoticeCompleted, TaskID: "bg", Result: notice}); err != nil {
			t.Fatal(err)
		}
		w.keep(notice)
		result, err := a.Run(ctx, request(user(text)))
		cancel()
		tally.count(result.Termination.Type)
		w.check(t, a, result, err)
	}
	return tally
}

func (w *world) check(t *testing.T, a *agent.Agent, result agent.Result, err error) {
	t.Helper()
	if bad := result.Termination.Type == agent.Failed || result.Termination.Type == agent.Cancelled; bad != (err != nil) {
		t.Errorf("termination %+v with error %v", result.Termination, err)
	}
	checkEvents(t, w.events)
	ends, finishes := 0, 0
	for _, e := range w.events {
		if e.Type == agent.EventPhase && e.Phase == abi.RunEnd {
			ends++
		}
		if e.Type == agent.EventRunFinish {
			finishes++
		}
	}
	if ends != 1 || finishes != 1 || w.events[len(w.events)-1].Type != agent.EventRunFinish {
		t.Errorf("run_end fired %d times, run_finish was sent %d times", ends, finishes)
	}
	log := a.Thread("t").Messages()
	if err := phases.CheckStructure(log); err != nil {
		t.Error(err)
	}
	all := strings.Join(texts(log), "\n")
	missing := 0
	for _, s := range w.said {
		n := strings.Count(all, s)
		if n == 0 && strings.HasPrefix(s, "[tool ") {
			missing++ // must have been withheld
			continue
		}
		if n != 1 {
			t.Errorf("%s stands %d times in the log:\n%s", s, n, all)
		}
	}
	if withheld := strings.Count(all, "[The result is withheld"); missing > withheld {
		t.Errorf("%d results are missing, but only %d were withheld:\n%s", missing, withheld, all)
	}
}
