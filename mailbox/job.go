package mailbox

import (
	"context"
	"errors"
	"reflect"
	"time"

	"github.com/mortise-dev/mortise/store"
)

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
	err := j.x.box.queue.Commit(ctx, j.x.hold, c)
	if errors.Is(err, ErrConflict) {
		if h, lookup := j.x.box.queue.Thread(ctx, j.x.hold.Thread); lookup == nil && (h.Claim == nil || h.Claim.Token != j.x.hold.Token) {
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
	return j.x.box.queue.Image(ctx, j.x.hold.Thread)
}

// LoadRun returns a run of the thread with its data, or false.
func (j *Job) LoadRun(ctx context.Context, id string) (Run, bool, error) {
	_, r, found, err := j.x.box.queue.RunOf(ctx, j.x.hold.Thread, id)
	return r, found, err
}

// Log lists messages of the thread's log by Seq, from the one at from, limit at most.
func (j *Job) Log(ctx context.Context, from, limit int) ([]Message, error) {
	return j.x.box.queue.Messages(ctx, j.x.hold.Thread, from, limit)
}

// Emit sends an event to readers of the run's stream, in this process or, a little later, in others. It never waits.
// Data is not changed any more.
func (j *Job) Emit(kind string, data []byte) { j.x.events.send(kind, data) }

// Suspended reports whether the run waits for something in the process: the lease is longer then.
func (j *Job) Suspended(yes bool) {
	j.x.suspended.Store(yes)
	j.x.renewNow()
}
