package agentrun

import (
	"cmp"
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/mailbox"
)

// ofThread returns the execution that a thread has here, or nil.
func (r *Runtime) ofThread(thread string) (found *activity) {
	r.live.Range(func(_, v any) bool {
		if a, ok := v.(*activity); ok && a.thread == thread {
			found = a
		}
		return found == nil
	})
	return found
}

// Steer implements mailbox.Steerer. Messages and decisions are durable before it returns true: they are in the thread
// whatever becomes of the run.
func (r *Runtime) Steer(ctx context.Context, run, id string, req mailbox.Request) bool {
	v, _ := r.live.Load(run)
	a, ok := v.(*activity)
	switch {
	case !ok:
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
