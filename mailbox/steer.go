package mailbox

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
)

// SubmitLive hands the messages of a request to the run that the thread has, if it takes
// them, and else queues the request as SubmitBackground does: also one that is for another run, for later, or that brings no
// messages. With expected set it must be that run.
// A run may get messages although it was reported that it did not: they come again then,
// under the same ids.
func (m *Mailbox) SubmitLive(ctx context.Context, r Request, expected string) (Submission, error) {
	if err := m.open(); err != nil {
		return Submission{}, err
	}
	r, err := r.complete(m.cfg.NewID)
	if err != nil {
		return Submission{}, err
	}
	h, err := m.Thread(ctx, r.Thread)
	if err != nil {
		return Submission{}, err
	}
	if !m.steers(h, r, expected) {
		return m.SubmitBackground(ctx, r)
	}
	if e, err := m.entry(r, false); err != nil {
		return Submission{}, err
	} else if sub, done, err := m.submitted(ctx, e); done || err != nil {
		return sub, err
	}
	d := Dispatch{ID: h.Claim.Dispatch, Thread: r.Thread, RunID: h.Open.ID}
	if accepted, err := m.deliver(ctx, d, r.Messages[0].ID, r); errors.Is(err, ErrTooLarge) {
		return Submission{}, err
	} else if err != nil || !accepted {
		return m.SubmitBackground(ctx, r)
	}
	sub := m.submission(state{Dispatch: d})
	sub.Running = true
	return sub, nil
}

// steers reports whether a request may be handed to the run that a thread has: it brings messages, for now, and for that run.
func (m *Mailbox) steers(h Thread, r Request, expected string) bool {
	switch {
	case h.Claim == nil, h.Open.Status != RunRunning, h.Tenant != r.Tenant:
		return false
	case expected != "" && h.Open.ID != expected, r.Run != "" && h.Open.ID != r.Run:
		return false
	default:
		return len(r.Messages) > 0 && !r.At.After(m.now())
	}
}

// deliver hands what a request brings to an execution, here or in another process.
func (m *Mailbox) deliver(ctx context.Context, d Dispatch, id string, r Request) (bool, error) {
	payload, err := m.encode(r)
	if err != nil {
		return false, err
	}
	c := command{ID: id, Payload: payload}
	if x := m.execution(d.Thread); x != nil {
		return x.hold.Dispatch == d.ID && x.accept(ctx, c), nil
	}
	ctx, cancel := context.WithTimeout(ctx, m.cfg.Waits.Live)
	defer cancel()
	ctx, end := m.observe(ctx, Operation{Name: "live_delivery", Thread: d.Thread, Dispatch: d.ID})
	accepted, err := m.sendCommand(ctx, d.Thread, d.ID, c)
	end(!accepted, err)
	return accepted, err
}

// listen takes commands of other processes while the execution lasts, and renews the lease when the thread was cancelled, interrupted or paused.
func (x *execution) listen(ctx context.Context) (stop func()) {
	stop, err := x.box.listen(ctx, x.hold.Dispatch, x.accept, x.renewNow)
	if err != nil {
		x.box.warn(ctx, "mailbox_not_listening", err, "thread", x.hold.Thread, "dispatch", x.hold.Dispatch)
		return func() {}
	}
	return stop
}

// accept hands a command to the run. A panic of the runtime refuses it: it may come from another process, on a goroutine of the store.
func (x *execution) accept(ctx context.Context, c command) (accepted bool) {
	s, ok := x.box.cfg.Runtime.(Steerer)
	r, err := decodeRequest(c.Payload, &x.claimed.Thread)
	if !ok || err != nil {
		return false
	}
	ctx, end := x.box.observe(ctx, Operation{Name: "steer", Thread: x.hold.Thread, Dispatch: x.hold.Dispatch})
	defer func() {
		if p := recover(); p != nil {
			accepted, err = false, fmt.Errorf("mailbox: dispatch %.80q: steering panicked: %v", x.hold.Dispatch, p)
			x.box.cfg.Logger.ErrorContext(ctx, "mailbox_steer_panicked", "thread", x.hold.Thread, "dispatch", x.hold.Dispatch, "panic", p, "stack", string(debug.Stack()))
		}
		end(!accepted, err)
	}()
	return s.Steer(ctx, x.claimed.Dispatch.RunID, c.ID, r)
}
