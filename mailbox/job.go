package mailbox

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/mortise-dev/mortise/store"
)

// Runtime executes runs.
type Runtime interface {
	// Run executes a dispatch once. It ends soon when ctx does; context.Cause is [ErrStopped], [ErrLeaseLost] or [ErrShutdown] then. An
	// error counts as in [Classify]. What it writes it writes with the job, which no other execution can then.
	Run(ctx context.Context, j *Job) (Result, error)
}

// Steerer is a [Runtime] whose runs take messages and decisions under way.
type Steerer interface {
	// Steer hands what a request brings to a run under way: messages, or decisions. True means that the run has it and will not lose it. The
	// same may come twice, under one id. A panic refuses it.
	Steer(ctx context.Context, run, id string, r Request) bool
}

// Judge is a [Runtime] that knows what decisions are about before they are queued.
type Judge interface {
	// Judge binds decisions about a run to what it waits for, so that none is taken for an answer to a later question. It reads the
	// thread's image alone, and is quick. With an [ErrRefused] one of them is about nothing that waits; the others come back bound all the
	// same, and that one too as far as it is known what it was about. It is an [ErrDecided] when one is about a call that has a decision:
	// a run under way gets no other one then.
	Judge(run string, image []byte, list []Decision) ([]Decision, error)
}

// Job is one execution of a dispatch.
type Job struct {
	Dispatch Dispatch
	Run      Run
	// Request is what was submitted.
	Request Request
	// Fence grows with each claim of the thread: systems outside that keep the greatest they
	// have seen can refuse an execution that has lost its lease.
	Fence uint64
	// Attempt counts from 1.
	Attempt int
	// StartedAt is when the execution began, by the clock of the mailbox.
	StartedAt time.Time
	// Messages is the length of the thread's log at the start.
	Messages int

	x *execution
}

// Commit writes to the thread, as long as the execution holds it. An error that is
// [ErrConflict] means that it does not. Events that were sent before it are shared before it, so that a reader
// finds what led to whatever is in the log.
func (j *Job) Commit(ctx context.Context, c Commit) error {
	j.x.share(ctx)
	err := j.x.box.commit(ctx, j.x.hold, c)
	if errors.Is(err, ErrConflict) {
		if h, lookup := j.x.box.Thread(ctx, j.x.hold.Thread); lookup == nil && (h.Claim == nil || h.Claim.Token != j.x.hold.Token) {
			j.x.cancel(ErrLeaseLost)
		}
	}
	return err
}

// Keeps reports whether the thread is in that store: what other views have of it there can be part of a commit.
func (j *Job) Keeps(s store.Store) bool {
	own := j.x.box.cfg.Store
	return reflect.TypeOf(s) == reflect.TypeOf(own) && reflect.TypeOf(s).Comparable() && s == own
}

// Load returns the record and the image of the thread.
func (j *Job) Load(ctx context.Context) (Thread, []byte, error) {
	return j.x.box.imageOf(ctx, j.x.hold.Thread)
}

// LoadRun returns a run of the thread with its data, or false.
func (j *Job) LoadRun(ctx context.Context, id string) (Run, bool, error) {
	_, r, found, err := j.x.box.runOf(ctx, j.x.hold.Thread, id)
	return r, found, err
}

// Log lists messages of the thread's log by Seq, from the one at from, limit at most.
func (j *Job) Log(ctx context.Context, from, limit int) ([]Message, error) {
	return j.x.box.Messages(ctx, j.x.hold.Thread, from, limit)
}

// Emit sends an event to readers of the run's stream, in this process or, a little later, in others. It never waits.
// Data is not changed any more.
func (j *Job) Emit(kind string, data []byte) { j.x.events.send(kind, data) }

// Suspended reports whether the run waits for something in the process: the lease is longer then.
func (j *Job) Suspended(yes bool) {
	j.x.suspended.Store(yes)
	j.x.renewNow()
}

// Reasons of runs that wait for a time, or for an operator. Their dispatch is still queued.
const (
	WaitRate  = "rate_limit"
	WaitPause = "manual_pause"
)

// postponed is an error with the time of the next execution.
type postponed struct {
	at     time.Time
	wait   string
	counts bool
	cause  error
}

func (p *postponed) Error() string {
	return fmt.Sprintf("%v; the next attempt is at %s", p.cause, p.at.UTC().Format(time.RFC3339))
}

func (p *postponed) Unwrap() error { return p.cause }

// RetryAt is for a [Runtime]: it returns an error with which an execution fails, and is tried again at that time and not after
// [Retry].Delay. It counts as an attempt.
func RetryAt(at time.Time, cause error) error { return &postponed{at: at, counts: true, cause: cause} }

// Postpone is for a [Runtime]: it returns an error with which an execution ends that cannot be made before a time, as when a provider has a
// rate limit. In a mailbox that was never started it counts as failed. Else it costs no attempt, up to 100 times in a row, and the dispatch keeps its place. The run waits until then, for reason:
// [WaitRate] if it is empty.
func Postpone(at time.Time, reason string, cause error) error {
	return &postponed{at: at, wait: reason, cause: cause}
}
