package mailbox

import (
	"context"
	"fmt"
)

// SubmitLive hands the messages of a request to the run that the thread has, if it takes
// them, and else queues the request as SubmitBackground does: also one that is for another run, for later, or that brings no
// messages. With expected set it must be that run.
// A run may get messages although it was reported that it did not: they come again then,
// under the same ids.
func (m *Mailbox) SubmitLive(ctx context.Context, r Request, expected string) (Submission, error) {
	r, err := r.complete(m.cfg.NewID)
	if err != nil {
		return Submission{}, err
	}
	h, err := m.queue.Head(ctx, r.Thread)
	if err != nil {
		return Submission{}, err
	}
	if !m.steers(h, r, expected) {
		return m.SubmitBackground(ctx, r)
	}
	if e, err := m.entry(r, false); err != nil {
		return Submission{}, err
	} else if sub, done, err := m.submitted(ctx, e, r); done || err != nil {
		return sub, err
	}
	open := h.Open
	payload, err := m.encode(r)
	if err != nil {
		return Submission{}, err
	}
	d := Dispatch{ID: h.Claim.Dispatch, Thread: r.Thread, RunID: open.ID}
	c := Command{Kind: CommandMessages, ID: r.Messages[0].ID, Payload: payload}
	if taken, err := m.deliver(ctx, d, c); err != nil || !taken {
		return m.SubmitBackground(ctx, r)
	}
	sub := submission(d)
	sub.Running = true
	sub.Events, _ = m.Events(sub.Dispatch)
	return sub, nil
}

// steers says whether a request may be handed to the run that a thread has: it brings messages, for now, and for that run.
func (m *Mailbox) steers(h Head, r Request, expected string) bool {
	switch {
	case h.Claim == nil, h.Open.Status != RunRunning, h.Tenant != r.Tenant:
		return false
	case expected != "" && h.Open.ID != expected, r.Run != "" && h.Open.ID != r.Run:
		return false
	default:
		return len(r.Messages) > 0 && !r.At.After(m.queue.now())
	}
}

// deliver hands a command to an execution, here or in another process.
func (m *Mailbox) deliver(ctx context.Context, d Dispatch, c Command) (bool, error) {
	if x := m.execution(d.Thread); x != nil {
		return x.hold.Dispatch == d.ID && x.accept(ctx, c), nil
	}
	live, ok := m.cfg.Store.(Live)
	if !ok {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.LiveWait)
	defer cancel()
	ctx, end := m.queue.begin(ctx, Operation{Name: OpLive, Thread: d.Thread, Dispatch: d.ID})
	taken, err := live.Deliver(ctx, Target{Thread: d.Thread, Run: d.RunID, Dispatch: d.ID}, c)
	end(!taken, err)
	return taken, err
}

// listen takes commands of other processes while the execution lasts.
func (x *execution) listen(ctx context.Context) (stop func()) {
	live, ok := x.box.cfg.Store.(Live)
	if !ok {
		return func() {}
	}
	target := Target{Thread: x.hold.Thread, Run: x.taken.Dispatch.RunID, Dispatch: x.hold.Dispatch}
	stop, err := live.Listen(ctx, target, x.accept)
	if err != nil {
		x.box.cfg.Logger.WarnContext(ctx, "mailbox_not_listening", "thread", x.hold.Thread, "dispatch", x.hold.Dispatch, "error", err)
		return func() {}
	}
	return stop
}

// accept takes a command. What it does not know it refuses.
func (x *execution) accept(ctx context.Context, c Command) bool {
	switch c.Kind {
	case CommandCancel:
		x.cancel(fmt.Errorf("%w: %s", ErrStopped, clip(string(c.Payload))))
		return true
	case CommandMessages, CommandDecision:
		s, ok := x.box.cfg.Runtime.(Steerer)
		return ok && x.steer(ctx, s, c)
	default:
		return false
	}
}

// Cancel cancels a dispatch: one that is queued at once, one that is carried out by asking it to
// stop. It is durable: whoever carries it out stops at the latest when its lease is to be renewed.
// It says whether there was something to cancel.
func (m *Mailbox) Cancel(ctx context.Context, dispatch string) (bool, error) {
	k, ok, err := m.queue.Cancel(ctx, dispatch, "cancelled")
	if err != nil || !ok {
		return false, err
	}
	if k.Dispatch.Status == Claimed {
		m.stopRun(ctx, k, "cancelled")
		return true, nil
	}
	m.settled(k.Dispatch)
	return true, nil
}

// CancelRun cancels a run: what it does, what is queued for it, or its waiting.
func (m *Mailbox) CancelRun(ctx context.Context, run string) (bool, error) {
	r, found, err := m.queue.Run(ctx, run)
	if err != nil || !found {
		return false, err
	}
	list, err := m.cfg.Store.Dispatches(ctx, DispatchQuery{Thread: r.Thread, Statuses: []Status{Queued, Claimed}, Limit: m.queue.limits.depth + 1})
	if err != nil {
		return false, wrap("run", run, err)
	}
	some := false
	for i := range list {
		if list[i].RunID == run {
			ok, err := m.Cancel(ctx, list[i].ID)
			if err != nil {
				return some, err
			}
			some = some || ok
		}
	}
	waited, err := m.queue.CancelRun(ctx, r.Thread, run, "cancelled")
	return some || waited, err
}

// CancelThread cancels the run that a thread has.
func (m *Mailbox) CancelThread(ctx context.Context, thread string) (bool, error) {
	h, err := m.queue.Head(ctx, thread)
	if err != nil || h.Open.ID == "" {
		return false, err
	}
	return m.CancelRun(ctx, h.Open.ID)
}

// DeadLetters lists dead letters by the time of their end, after that one.
func (m *Mailbox) DeadLetters(ctx context.Context, after Dispatch, limit int) ([]Dispatch, error) {
	list, err := m.cfg.Store.Dispatches(ctx, DispatchQuery{Statuses: []Status{DeadLetter}, After: after, Limit: limit})
	return list, wrap("list of", string(DeadLetter), err)
}

// Replay queues a dead letter again, for a new run.
func (m *Mailbox) Replay(ctx context.Context, dispatch string) (Submission, error) {
	k, err := m.queue.Replay(ctx, dispatch, m.cfg.NewID())
	if err != nil {
		return Submission{}, err
	}
	m.wake()
	return submission(k.Dispatch), nil
}

// Discard gives a dead letter up.
func (m *Mailbox) Discard(ctx context.Context, dispatch string) error {
	return m.queue.Discard(ctx, dispatch)
}
