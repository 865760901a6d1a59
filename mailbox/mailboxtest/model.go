package mailboxtest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// Environment variables: the seed of the first schedule, and how many schedules there are
// instead of what a test of a store asks for.
const (
	modelSeed      = "MORTISE_TEST_MAILBOX_SEED"
	modelSchedules = "MORTISE_TEST_MAILBOX_SCHEDULES"
)

// How long a schedule is, and how many share a store.
const (
	modelSteps = 24
	modelShare = 250
)

// TestModel runs random schedules of transitions on threads of their own, with answers of the store
// that get lost and others that come twice, and compares each answer and each state with
// those of a model in memory that was written apart. A schedule that goes wrong is
// shortened and printed; its seed runs it again.
func TestModel(t *testing.T, open func(t *testing.T) mailbox.Store, schedules int) {
	t.Helper()
	first := fromEnv(t, modelSeed, rand.Uint64())                                  //nolint:gosec // not a secret
	schedules = int(fromEnv(t, modelSchedules, uint64(schedules)) & math.MaxInt32) //nolint:gosec // not negative
	var names atomic.Int64
	taken := map[string]int{}
	for from := 0; from < schedules && !t.Failed(); from += modelShare {
		t.Run(fmt.Sprintf("from_%d", from), func(t *testing.T) {
			store := open(t)
			for i := from; i < min(from+modelShare, schedules); i++ {
				playOne(t, store, first+uint64(i), &names, taken) //nolint:gosec // not negative
			}
		})
	}
	for _, a := range actions() {
		if schedules >= 1000 && taken[string(a)] < schedules/500 {
			t.Errorf("%s changed something in only %d of %d schedules", a, taken[string(a)], schedules)
		}
	}
	t.Logf("%d schedules of %d steps from %s=%d", schedules, modelSteps, modelSeed, first)
}

// playOne plays the schedule of a seed, and ends the test if it goes wrong.
func playOne(t *testing.T, store mailbox.Store, seed uint64, names *atomic.Int64, taken map[string]int) {
	t.Helper()
	steps := schedule(seed)
	trouble := play(t.Context(), store, names.Add(1), steps, taken)
	if trouble == "" {
		return
	}
	steps, trouble = shorten(steps, trouble, func(steps []step) string { return play(t.Context(), store, names.Add(1), steps, nil) })
	var out strings.Builder
	for _, s := range steps {
		fmt.Fprintf(&out, "\t%+v\n", s)
	}
	t.Fatalf("%s=%d: %s\nafter\n%s", modelSeed, seed, trouble, out.String())
}

// fromEnv is a number of the environment, or otherwise.
func fromEnv(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// action is a kind of step.
type action string

const (
	doEnqueue   action = "enqueue"
	doInline    action = "inline" // enqueue and claim
	doClaim     action = "claim"
	doClaimOne  action = "claim_one"
	doExtend    action = "extend"
	doSettle    action = "settle"
	doCommit    action = "commit"
	doInterrupt action = "interrupt"
	doCancel    action = "cancel"
	doCancelRun action = "cancel_run"
	doExpire    action = "expire"
	doLapse     action = "lapse"
	doReplay    action = "replay"
	doDiscard   action = "discard"
	doDrop      action = "drop"
	doWait      action = "wait"
)

func actions() []action {
	return []action{
		doEnqueue, doInline, doClaim, doClaimOne, doExtend, doSettle, doCommit, doInterrupt, doCancel, doCancelRun,
		doExpire, doLapse, doReplay, doDiscard, doDrop, doWait,
	}
}

// step is one step of a schedule. What it names may not be there: then it has to be refused.
type step struct {
	Do action
	// ID is a dispatch, Token of the latest claims the one to use, counted backwards.
	ID       int
	Token    int
	Priority uint8
	Dedupe   string
	Internal bool
	Max      int
	Delay    time.Duration
	Verdict  mailbox.Verdict
	Result   mailbox.RunStatus
	Fault    Fault
}

const (
	modelIDs   = 5
	modelDepth = 3
)

// schedule makes the steps of a seed. Some come more often, so that there is something to do.
func schedule(seed uint64) []step {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // not a secret
	often := slices.DeleteFunc(actions(), func(a action) bool { return a == doDrop && r.IntN(4) > 0 })
	often = append(often, doEnqueue, doEnqueue, doClaim, doClaim, doClaim, doSettle, doSettle, doSettle, doWait, doWait, doLapse, doLapse, doCancelRun, doReplay, doDiscard)
	steps := make([]step, modelSteps)
	for i := range steps {
		steps[i] = step{
			Do: often[r.IntN(len(often))], ID: r.IntN(modelIDs), Token: pick(r, 0, 0, 0, 1, 2), Priority: pick[uint8](r, 128, 128, 0),
			Dedupe: pick(r, "", "", "k"), Internal: r.IntN(3) == 0, Max: pick(r, 1, 3), Delay: pick(r, 0, 0, time.Second, time.Minute),
			Verdict: pick(r, mailbox.Ack, mailbox.Ack, mailbox.Ack, mailbox.Retry, mailbox.Bury, mailbox.Bury, mailbox.GiveBack, mailbox.Withdraw, mailbox.Supersede),
			Result:  pick(r, "", mailbox.RunDone, mailbox.RunWaiting, mailbox.RunWaiting), Fault: pick(r, FaultNone, FaultNone, FaultBefore, FaultAfter, FaultTwice),
		}
	}
	return steps
}

// forgets says whether nobody can tell any more how a step came out, when its first answer was lost: what
// was to be done is done, and by nobody's token.
func (s step) forgets(want string) bool {
	return s.Fault == FaultAfter && (s.Do == doExpire || s.Do == doLapse || s.Do == doInterrupt) && strings.HasPrefix(want, "ok")
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// shorten leaves out steps for as long as something goes wrong.
func shorten(steps []step, trouble string, try func([]step) string) ([]step, string) {
	for size := len(steps) / 2; size > 0; {
		smaller := false
		for at := 0; at+size <= len(steps); {
			fewer := slices.Delete(slices.Clone(steps), at, at+size)
			if found := try(fewer); found != "" {
				steps, trouble, smaller = fewer, found, true
			} else {
				at += size
			}
		}
		if !smaller || size > 1 {
			size /= 2
		}
	}
	return steps, trouble
}

// play runs a schedule on a thread of its own, and says what went wrong first. It counts the
// actions that changed something.
func play(ctx context.Context, store mailbox.Store, name int64, steps []step, taken map[string]int) string {
	p, err := newPlayer(store, name)
	if err != nil {
		return err.Error()
	}
	before := p.model.snapshot()
	for i, s := range steps {
		p.fault.Store(&s.Fault)
		now := p.clock.Now()
		got := p.do(ctx, s)
		p.fault.Store(nil)
		want := p.model.do(s, now)
		if got != want && !s.forgets(want) {
			return fmt.Sprintf("step %d, %s: the answer is %q, want %q", i, s.Do, got, want)
		}
		after, trouble := p.snapshot(ctx)
		if expected := p.model.snapshot(); trouble == "" && !after.equal(expected) {
			trouble = fmt.Sprintf("the state is\n%+v, want\n%+v", after, expected)
		}
		if trouble == "" {
			trouble = p.model.invariants(after, p.clock.Now())
		}
		if trouble != "" {
			return fmt.Sprintf("step %d, %s: %s", i, s.Do, trouble)
		}
		if taken != nil && (s.Do == doWait || !before.equal(after)) {
			taken[string(s.Do)]++
		}
		before = after
	}
	return ""
}
