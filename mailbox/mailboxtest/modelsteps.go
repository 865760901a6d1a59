package mailboxtest

import (
	"math/rand/v2"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// action is a kind of step.
type action string

const (
	doEnqueue   action = "enqueue"
	doInline    action = "inline" // a foreground request
	doPoll      action = "poll"   // what is due: a claim that begins or is over, the end of a wait
	doExtend    action = "extend"
	doSettle    action = "settle"
	doCommit    action = "commit"
	doInterrupt action = "interrupt"
	doCancel    action = "cancel"
	doCancelRun action = "cancel_run"
	doReplay    action = "replay"
	doDiscard   action = "discard"
	doDrop      action = "drop"
	doPause     action = "pause"  // of the thread; its end, too
	doTenant    action = "tenant" // the same for the tenant
	doWait      action = "wait"
)

func actions() []action {
	return []action{
		doEnqueue, doInline, doPoll, doExtend, doSettle, doCommit, doInterrupt, doCancel, doCancelRun, doReplay, doDiscard, doDrop, doPause, doTenant, doWait,
	}
}

// What an execution comes to. The last two come of what it was asked.
const (
	endAck      = "ack"
	endRetry    = "retry"
	endBury     = "bury"
	endPostpone = "postpone"
	endGiveBack = "give back"
	endWithdraw = "withdraw"
)

// step is one step of a schedule. What it names may not be there: then it has to be refused.
type step struct {
	Do action
	// ID is a dispatch, Token of the latest claims the one to use, counted backwards.
	ID       int
	Token    int
	Priority uint8
	Dedupe   string
	// Internal is the origin. It makes a commit one of progress, and a pause one that begins.
	Internal bool
	Max      int
	Delay    time.Duration
	End      string
	Result   mailbox.RunStatus
	Fault    Fault
}

const (
	modelIDs   = 8
	modelDepth = 3
)

// schedule makes the steps of a seed: by chance, with a preference for those that change something in the model.
func schedule(seed uint64) []step {
	r := rand.New(rand.NewPCG(seed, 1)) //nolint:gosec // not a secret
	often := slices.DeleteFunc(actions(), func(a action) bool {
		return (a == doDrop || a == doInterrupt || a == doPause || a == doTenant) && r.IntN(4) > 0
	})
	often = append(often, doPoll, doPoll, doPoll, doPoll, doSettle, doSettle, doSettle, doCommit, doWait, doExtend, doCancelRun, doReplay, doReplay, doDiscard)
	m, now := newModel(), NewClock().Now()
	steps, before := make([]step, 0, modelSteps), m.snapshot()
	for len(steps) < modelSteps {
		s := draw(r, often)
		if s.Do == doWait {
			if r.IntN(modelPatient) == 0 {
				now, steps = now.Add(modelWait(s)), append(steps, s)
			}
			continue
		}
		stale := m.stale(s) // which changes nothing if all is well
		m.do(s, modelProcess(len(steps)), now)
		after := m.snapshot()
		if !before.equal(after) || stale || r.IntN(modelIdle) == 0 {
			before, steps = after, append(steps, s)
		}
	}
	return steps
}

// One in so many of the steps that change nothing stays, and one in so many waits.
const (
	modelIdle    = 6
	modelPatient = 2
)

// draw makes a step.
func draw(r *rand.Rand, from []action) step {
	return step{
		Do: pick(r, from...), ID: r.IntN(modelIDs), Token: pick(r, 0, 0, 0, 1, 1, 2), Priority: pick[uint8](r, 128, 128, 0),
		Dedupe: pick(r, "", "k"), Internal: r.IntN(3) == 0, Max: pick(r, 1, 3), Delay: pick(r, 0, 0, time.Second, time.Minute),
		End:    pick(r, endAck, endAck, endAck, endRetry, endBury, endBury, endPostpone),
		Result: pick(r, "", mailbox.RunDone, mailbox.RunWaiting, mailbox.RunWaiting), Fault: pick(r, FaultNone, FaultNone, FaultBefore, FaultAfter, FaultTwice),
	}
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
