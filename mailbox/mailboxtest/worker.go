package mailboxtest

import (
	"context"
	"errors"
	"sync"

	"github.com/mortise-dev/mortise/mailbox"
)

// worker is a runtime that does what the message asks: it fails the first time, waits, or continues until it is asked to end. It
// writes the message to the log.
type worker struct {
	mu sync.Mutex
	// busy are the executions by thread, until their lease is lost.
	busy map[string]context.Context
	ends map[string]chan struct{}
	// bad is what must not happen.
	bad []string
}

func newWorker() *worker {
	return &worker{busy: map[string]context.Context{}, ends: map[string]chan struct{}{}}
}

func (r *worker) end(run string) chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ends[run] == nil {
		r.ends[run] = make(chan struct{}, 1)
	}
	return r.ends[run]
}

// enter notes that an execution of a thread begins.
func (r *worker) enter(ctx context.Context, thread string) (leave func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if other := r.busy[thread]; other != nil && other.Err() == nil {
		r.bad = append(r.bad, "two executions of thread "+thread+" at once")
	}
	r.busy[thread] = ctx //nolint:fatcontext // it is read, and not passed on
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.busy[thread] == ctx {
			delete(r.busy, thread)
		}
	}
}

func (r *worker) Run(ctx context.Context, j *mailbox.Job) (mailbox.Result, error) {
	defer r.enter(ctx, j.Dispatch.Thread)()
	in := j.Request.Messages[0]
	if err := write(ctx, j, in); err != nil {
		return mailbox.Result{}, err
	}
	j.Emit("word", in.Data) // who waits for that knows that it is in the log
	switch word := string(in.Data); {
	case word == "fail" && j.Attempt == 1:
		return mailbox.Result{}, errors.New("a blip")
	case word == "bury":
		return mailbox.Result{}, mailbox.ErrPermanent
	case word == "wait":
		return mailbox.Result{Status: mailbox.RunWaiting, Wait: "user_input"}, nil
	case word == "long":
		select {
		case <-r.end(j.Run.ID):
		case <-ctx.Done():
			return mailbox.Result{}, context.Cause(ctx)
		}
	}
	return mailbox.Result{Termination: "natural"}, nil
}

// write puts a message into the log, once.
func write(ctx context.Context, j *mailbox.Job, in mailbox.Input) error {
	log, err := j.Log(ctx, 1, 100)
	if err != nil {
		return err
	}
	for i := range log {
		if log[i].ID == in.ID {
			return nil
		}
	}
	c := mailbox.Commit{ID: j.Dispatch.ID, From: len(log), Append: []mailbox.Message{{ID: in.ID, Run: j.Run.ID, Data: in.Data}}, Data: in.Data}
	return j.Commit(ctx, c)
}

func (r *worker) Steer(_ context.Context, run, _ string, _ mailbox.Request) bool {
	select {
	case r.end(run) <- struct{}{}:
	default:
	}
	return true
}
