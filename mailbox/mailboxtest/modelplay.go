package mailboxtest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
)

// player runs steps on a thread of a store. Its faults happen once for each step.
type player struct {
	store mailbox.Store
	queue *mailbox.Queue
	clock *Clock
	fault atomic.Pointer[Fault]
	model *model
	// count makes ids of runs that are replayed, interrupts and commits.
	count int
}

const modelThread = "t"

func newPlayer(store mailbox.Store, name int64) (*player, error) {
	p := &player{clock: NewClock(), model: newModel()}
	part := &prefixed{Store: store, prefix: fmt.Sprintf("m%d/", name)}
	p.store = part
	var err error
	p.queue, err = mailbox.NewQueue(mailbox.QueueConfig{
		Store: &Faulty{Store: part, Plan: p.plan}, Now: p.clock.Now, Skew: -1, Depth: modelDepth,
	})
	return p, err
}

// plan gives the first update of a step its fault.
func (p *player) plan(_ context.Context, operation string) Fault {
	if operation != "update" {
		return FaultNone
	}
	if f := p.fault.Swap(nil); f != nil {
		return *f
	}
	return FaultNone
}

func modelID(i int) string { return fmt.Sprint("d", i) }

// do runs a step and says how it came out.
func (p *player) do(ctx context.Context, s step) string {
	now := p.clock.Now()
	id := modelID(s.ID)
	h := mailbox.Hold{Thread: modelThread, Dispatch: p.model.lastHolder(s.Token), Token: p.model.lastToken(s.Token)}
	p.count++
	name := fmt.Sprint("n", p.count)
	switch s.Do {
	case doEnqueue, doInline:
		return p.enqueue(ctx, s, now)
	case doClaim:
		k, ok, err := p.queue.Claim(ctx, modelThread, p.request())
		return claimed(k, ok, err)
	case doClaimOne:
		k, ok, err := p.queue.ClaimDispatch(ctx, id, p.request())
		return claimed(k, ok, err)
	case doExtend:
		_, err := p.queue.Extend(ctx, h, lease)
		return answer(true, err)
	case doSettle:
		_, err := p.queue.Settle(ctx, h, mailbox.Settlement{Verdict: s.Verdict, RetryAt: now.Add(s.Delay), Error: "boom", Result: s.result(now)})
		return answer(true, err)
	case doCommit:
		return answer(true, p.queue.Commit(ctx, h, mailbox.Commit{
			ID: name, From: p.model.log, Append: []mailbox.Message{{ID: name}}, Result: s.result(now),
		}))
	case doInterrupt:
		out, err := p.queue.Interrupt(ctx, modelThread, mailbox.Interrupt{ID: name, Keep: func(d mailbox.Dispatch) bool { return s.Internal && d.Origin == "internal" }})
		return fmt.Sprintf("%s, superseded %d, kept %d", answer(true, err), len(out.Superseded), out.Kept)
	case doWait:
		p.clock.Add(modelWait(s))
		return "ok"
	default:
		return p.control(ctx, s, id, name)
	}
}

func (p *player) control(ctx context.Context, s step, id, name string) string {
	switch s.Do {
	case doCancel:
		_, ok, err := p.queue.Cancel(ctx, id, "no more")
		return answer(ok, err)
	case doCancelRun:
		ok, err := p.queue.CancelRun(ctx, modelThread, p.model.runID(s.ID), "no more")
		return answer(ok, err)
	case doExpire:
		k, ok, err := p.queue.Expire(ctx, modelThread)
		return claimed(k, ok, err)
	case doLapse:
		run, err := p.queue.Lapse(ctx, modelThread)
		return answer(run != "", err)
	case doReplay:
		_, err := p.queue.Replay(ctx, id, "run-"+name)
		return answer(true, err)
	case doDiscard:
		return answer(true, p.queue.Discard(ctx, id))
	case doDrop:
		return answer(true, p.queue.Drop(ctx, modelThread))
	default:
		return "no such step"
	}
}

func (p *player) request() mailbox.ClaimRequest {
	return mailbox.ClaimRequest{Token: fmt.Sprint("token", p.count), Owner: "worker", Lease: lease, Instance: "i"}
}

func (p *player) enqueue(ctx context.Context, s step, now time.Time) string {
	e := mailbox.Entry{
		ID: modelID(s.ID), Thread: modelThread, NewRun: fmt.Sprint("run-n", p.count), Priority: s.Priority, Dedupe: s.Dedupe,
		AvailableAt: now.Add(s.Delay), MaxAttempts: s.Max, Request: []byte(modelID(s.ID)),
	}
	if s.Internal {
		e.Origin = "internal"
	}
	if s.Do == doInline {
		r := p.request()
		e.Claim = &r
	}
	k, err := p.queue.Enqueue(ctx, e)
	if err != nil {
		return answer(false, err)
	}
	return fmt.Sprint("ok ", k.Dispatch.ID, " ", k.Dispatch.Status)
}

// modelWait is how far a step moves the clock: to just before, at and after the end of a lease, too.
func modelWait(s step) time.Duration {
	return []time.Duration{time.Millisecond, time.Second, lease, lease + time.Second, time.Minute}[s.ID]
}

func (s step) result(now time.Time) mailbox.Result {
	r := mailbox.Result{Status: s.Result}
	if s.Result == mailbox.RunWaiting {
		r.Wait = "tool_permission"
		if s.ID > 0 {
			r.WaitUntil = now.Add(time.Second)
		}
	}
	return r
}

func claimed(k mailbox.Taken, ok bool, err error) string {
	if err != nil || !ok {
		return answer(ok, err)
	}
	return "ok " + k.Dispatch.ID
}

// answer names how a transition came out.
func answer(ok bool, err error) string {
	for _, known := range []error{mailbox.ErrNotFound, mailbox.ErrExists, mailbox.ErrConflict, mailbox.ErrFull, mailbox.ErrBusy, mailbox.ErrInvalid} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	switch {
	case err != nil:
		return "unexpected: " + err.Error()
	case !ok:
		return "nothing"
	default:
		return "ok"
	}
}

// snapshot reads the thread.
func (p *player) snapshot(ctx context.Context) (snapshot, string) {
	need := mailbox.Need{RunsOf: true, Next: true, Now: p.clock.Now(), Queued: true, Requests: true}
	for i := range modelIDs {
		need.Dispatches = append(need.Dispatches, modelID(i))
	}
	for i := range p.count {
		need.Runs = append(need.Runs, fmt.Sprint("run-n", i+1))
	}
	s, err := p.store.Load(ctx, modelThread, need)
	if err != nil {
		return snapshot{}, err.Error()
	}
	out := snapshot{
		epoch: s.Head.Epoch, fence: s.Head.Fence, queued: s.Head.Queued, log: s.Head.Messages, open: s.Head.Open.ID, queue: fmt.Sprint(s.Queued),
		due: s.Head.DueAt,
	}
	if c := s.Head.Claim; c != nil {
		out.claim, out.until, out.stop = c.Dispatch+" "+c.Token, c.Until, c.Stop != ""
	}
	for id, d := range s.Dispatches {
		if string(d.Request) != id {
			return out, fmt.Sprintf("the request of %s is %q", id, d.Request)
		}
		out.items = append(out.items, item{id, string(d.Status), d.Attempts, d.Epoch, d.Seq, d.AvailableAt, d.Holding, d.End, d.RunID})
	}
	for id, r := range s.Runs {
		out.items = append(out.items, item{id: id, status: string(r.Status) + " " + r.Termination, run: r.Dispatch})
	}
	slices.SortFunc(out.items, item.compare)
	return out, ""
}
