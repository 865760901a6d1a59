package agentrun

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
)

// enter makes an execution known, with what the one before it accepted and did not read.
func (r *Runtime) enter(run string, a *activity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	a.agent.Thread(a.thread).PutBack(r.unread[a.thread])
	delete(r.unread, a.thread)
	r.live[run] = a
}

func (r *Runtime) leave(run string, a *activity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, run)
	r.salvage(a)
}

// ofThread returns the execution that a thread has here, with its run, or nil.
func (r *Runtime) ofThread(thread string) (run string, found *activity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for id, a := range r.live {
		if a.thread == thread {
			return id, a
		}
	}
	return "", nil
}

// salvage keeps the notifications that an execution accepted and did not read for the next one of its
// thread, except those that are durable. The caller holds the lock.
func (r *Runtime) salvage(a *activity) {
	if list := a.keep.unkept(a.agent.Thread(a.thread).TakeHeld()); len(list) > 0 {
		r.unread[a.thread] = append(r.unread[a.thread], list...)
	}
}

func (r *Runtime) activity(run string) *activity {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[run]
}

// Steer implements mailbox.Steerer. Messages and decisions are durable before it returns true: they are in the thread
// whatever becomes of the run.
func (r *Runtime) Steer(ctx context.Context, run, id string, req mailbox.Request) bool {
	a := r.activity(run)
	switch {
	case a == nil:
		return false
	case len(req.Messages) == 0:
		return a.decide(ctx, run, id, req)
	default:
		return a.send(ctx, req)
	}
}

func (a *activity) send(ctx context.Context, req mailbox.Request) bool {
	list, err := messages(req.Messages)
	if err != nil || len(req.Decisions) > 0 {
		return false
	}
	added, ok := a.keep.accept(ctx, list)
	if !ok || len(added) == 0 {
		return ok
	}
	// What does not reach the run any more is queued after it, or read by the next one.
	_ = a.agent.Deliver(ctx, a.thread, abi.Notice{Kind: abi.NoticeMessages, Messages: added})
	return true
}

func (a *activity) decide(ctx context.Context, run, name string, req mailbox.Request) bool {
	list := decisions(req.Decisions)
	for i := range list {
		list[i].ID = cmp.Or(list[i].ID, fmt.Sprint(name, "/", i)) // the same if it comes twice
	}
	return a.keep.decide(ctx, list, func(list ...agent.Decision) error {
		c, err := a.agent.Control(run)
		if err != nil {
			return err
		}
		return c.Decide(list...)
	})
}

// Deliver sends a notification, as of a background task, to the run that a thread has in this process; what
// the run does not read its thread's next run here does. It is agent.ErrNoRun when there is none:
// background.Config.Ledger keeps the notification then, and [Waker] wakes the thread if it waits for it.
func (r *Runtime) Deliver(ctx context.Context, thread string, n abi.Notice) error {
	run, found := r.ofThread(thread)
	if found == nil {
		return fmt.Errorf("agentrun: thread %.80q: %w", thread, agent.ErrNoRun)
	}
	if err := found.agent.Deliver(ctx, thread, n); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.live[run] != found {
		r.salvage(found) // it ended meanwhile
	}
	return nil
}

// requeue queues what a run did not read.
func (r *Runtime) requeue(ctx context.Context, j *mailbox.Job, list []abi.Message) {
	if r.cfg.Requeue == nil || len(list) == 0 {
		return
	}
	inputs, err := Inputs(list...)
	if err != nil {
		return // the thread's next run reads it
	}
	_, _ = r.cfg.Requeue(ctx, mailbox.Request{
		Thread: j.Dispatch.Thread, Tenant: j.Request.Tenant, Agent: j.Run.Agent, Messages: inputs,
		Key: "unread " + j.Dispatch.Instance, Origin: j.Request.Origin, Adapter: j.Request.Adapter,
	})
}
