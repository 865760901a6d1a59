package agentrun

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
)

func (r *Runtime) enter(run string, a *activity) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.live[run] = a
}

func (r *Runtime) leave(run string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.live, run)
}

func (r *Runtime) activity(run string) *activity {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.live[run]
}

// Steer implements mailbox.Steerer. Messages and decisions are durable before it says yes: they are in the thread
// whatever becomes of the run.
func (r *Runtime) Steer(ctx context.Context, run string, c mailbox.Command) bool {
	a := r.activity(run)
	if a == nil {
		return false
	}
	req, err := mailbox.DecodeRequest(c.Payload)
	if err != nil {
		return false
	}
	switch c.Kind {
	case mailbox.CommandMessages:
		return a.send(ctx, req)
	case mailbox.CommandDecision:
		return a.decide(ctx, run, c.ID, req)
	default:
		return false
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

// Deliver hands a notice, as of a background task, to the run that a thread has in this process. It is
// agent.ErrNoRun when there is none: wake the thread with a request then, see [Wake].
func (r *Runtime) Deliver(ctx context.Context, thread string, n abi.Notice) error {
	r.mu.Lock()
	var found *activity
	for _, a := range r.live {
		if a.thread == thread {
			found = a
		}
	}
	r.mu.Unlock()
	if found == nil {
		return fmt.Errorf("agentrun: thread %.80q: %w", thread, agent.ErrNoRun)
	}
	return found.agent.Deliver(ctx, thread, n)
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
