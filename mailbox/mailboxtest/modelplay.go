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
	// prefix is that of all names in the store, runs are the ids that steps had for new runs, and taken counts the steps that changed
	// something.
	prefix string
	runs   []string
	taken  map[action]int
}

// modelThread is the thread of each player, in its own part of the store, and modelWaits what runs wait for.
const (
	modelThread = "t"
	modelWaits  = "tool_permission"
)

func newPlayer(store mailbox.Store, name int) (*player, error) {
	p := &player{clock: NewClock(), model: newModel(), prefix: fmt.Sprintf("m%d/", name), taken: map[action]int{}}
	if two, ok := store.(*pair); ok {
		store = InTurns(two.Store, two.other) // turns of its own
	}
	part := &prefixed{Store: store, prefix: p.prefix}
	p.store = part
	var err error
	p.queue, err = mailbox.NewQueue(mailbox.QueueConfig{
		Store: &Faulty{Store: part, Plan: p.plan}, Now: p.clock.Now, Skew: -1, Depth: modelDepth,
	})
	return p, err
}

// play takes steps and says what went wrong first.
func (p *player) play(ctx context.Context, steps []step) string {
	before := p.model.snapshot()
	for i, s := range steps {
		now := p.clock.Now()
		p.fault.Store(&s.Fault)
		got := p.do(ctx, s)
		p.fault.Store(nil)
		want := p.model.do(s, now)
		if got != want && !s.forgets(want) {
			return fmt.Sprintf("step %d, %s: the answer is %q, want %q", i, s.Do, got, want)
		}
		need := p.look(i, s, i == len(steps)-1)
		after, trouble := p.snapshot(ctx, need)
		if trouble == "" && need.Requests {
			trouble = p.readLog(ctx)
		}
		if expected := p.model.snapshot(); trouble == "" && !after.equal(expected) {
			trouble = fmt.Sprintf("the state is\n%+v, want\n%+v", after, expected)
		}
		if trouble == "" {
			trouble = p.model.invariants(after, p.clock.Now())
		}
		if trouble != "" {
			return fmt.Sprintf("step %d, %s: %s", i, s.Do, trouble)
		}
		if s.Do == doWait || !before.equal(after) {
			p.taken[s.Do]++
		}
		before = after
	}
	return ""
}

// lookAround is after how many steps all is looked at that could be there.
const lookAround = 12

// look says what to read after a step: all that the model has, and what the step may have made. Now and then, after a drop
// and at the end, it is all that any step may have made, requests included.
func (p *player) look(i int, s step, last bool) mailbox.Need {
	n := mailbox.Need{RunsOf: true, Next: true, Now: p.clock.Now(), Queued: true, Runs: slices.Clone(p.runs)}
	if n.Requests = last || i%lookAround == lookAround-1 || s.Do == doDrop; !n.Requests {
		made := fmt.Sprint("run-n", p.count)
		n.Runs = slices.DeleteFunc(n.Runs, func(id string) bool { return id != made && p.model.runs[id] == nil })
	}
	for d := range modelIDs {
		if id := modelID(d); n.Requests || d == s.ID || p.model.dispatches[id] != nil {
			n.Dispatches = append(n.Dispatches, id)
		}
	}
	return n
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
	if s.Do == doEnqueue || s.Do == doInline || s.Do == doReplay {
		p.runs = append(p.runs, "run-"+name)
	}
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
			ID: name, From: len(p.model.log), Append: []mailbox.Message{{ID: name}}, Result: s.result(now),
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
	return mailbox.ClaimRequest{Token: fmt.Sprint("token", p.count), Owner: "worker", Lease: lease, Instance: "i", NewRun: fmt.Sprint("run-n", p.count)}
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
	far := []time.Duration{time.Millisecond, time.Second, lease, lease + time.Second, time.Minute}
	return far[s.ID%len(far)]
}

func (s step) result(now time.Time) mailbox.Result {
	r := mailbox.Result{Status: s.Result}
	if s.Result == mailbox.RunWaiting {
		r.Wait = modelWaits
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

// readLog compares the log of the thread.
func (p *player) readLog(ctx context.Context) string {
	list, err := p.store.Messages(ctx, modelThread, 1, modelSteps)
	if err != nil {
		return err.Error()
	}
	var log []string
	for i, m := range list {
		if log = append(log, m.ID); m.Seq != i+1 {
			return fmt.Sprintf("message %d has the place %d", i+1, m.Seq)
		}
	}
	if !slices.Equal(log, p.model.log) {
		return fmt.Sprintf("the log is %q, want %q", log, p.model.log)
	}
	return ""
}

// snapshot reads of the thread what is needed.
func (p *player) snapshot(ctx context.Context, need mailbox.Need) (snapshot, string) {
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
		if need.Requests && string(d.Request) != id {
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
