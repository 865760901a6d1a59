package mailboxtest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/queue"
	"github.com/mortise-dev/mortise/store"
)

// player runs steps on a thread of a store. Its faults happen once for each step.
type player struct {
	store store.Store
	// processes take turns, by threes: what one remembers, the other has changed. queue is the one whose turn it is.
	processes [2]*queue.Queue
	queue     *queue.Queue
	clock     *Clock
	fault     atomic.Pointer[Fault]
	model     *model
	// count makes ids of runs that are replayed, interrupts and commits.
	count int
	// prefix is that of all names in the store, and taken counts the steps that changed
	// something.
	prefix string
	taken  map[action]int
}

// modelThread is the thread of each player, in its own part of the store, of the tenant modelTenant, and modelWaits what runs wait for.
const (
	modelThread = "t"
	modelTenant = "acme"
	modelOwner  = "worker"
	modelWaits  = "tool_permission"
)

func newPlayer(one, other store.Store, name int) (*player, error) {
	p := &player{clock: NewClock(), model: newModel(), prefix: fmt.Sprintf("m%d/", name), taken: map[action]int{}, store: one}
	for i, s := range []store.Store{one, other} {
		var err error
		p.processes[i], err = queue.New(queue.Config{
			Store: &Faulty{Store: s, Plan: p.plan}, Now: p.clock.Now, Skew: -1, Depth: modelDepth,
		})
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// play takes steps and returns what went wrong first.
func (p *player) play(ctx context.Context, steps []step) string {
	before := p.model.snapshot()
	for i, s := range steps {
		now := p.clock.Now()
		p.queue = p.processes[i%6/3]
		p.fault.Store(&s.Fault)
		got := p.do(ctx, s)
		p.fault.Store(nil)
		want := p.model.do(s, now)
		if got != want {
			return fmt.Sprintf("step %d, %s: the answer is %q, want %q", i, s.Do, got, want)
		}
		after, trouble := p.snapshot(ctx)
		if trouble == "" {
			trouble = p.readLog(ctx)
		}
		if expected := p.model.snapshot(); trouble == "" && !after.equal(expected) {
			trouble = fmt.Sprintf("the state is\n%+v, want\n%+v", after, expected)
		}
		if trouble == "" {
			trouble = p.model.invariants(after, p.clock.Now())
		}
		if trouble == "" && s.Do == doClaim && got == "nothing" {
			trouble = p.model.rests(after, now)
		}
		if trouble != "" {
			return fmt.Sprintf("step %d, %s: %s", i, s.Do, trouble)
		}
		if s.Do == doWait || s.Do == doPoll || !before.equal(after) {
			p.taken[s.Do]++
		}
		before = after
	}
	return ""
}

// plan gives the first write of a step its fault.
func (p *player) plan(_ context.Context, operation string) Fault {
	if operation != "apply" {
		return FaultNone
	}
	if f := p.fault.Swap(nil); f != nil {
		return *f
	}
	return FaultNone
}

func modelID(i int) string { return fmt.Sprint("d", i) }

// do runs a step and returns its answer.
func (p *player) do(ctx context.Context, s step) string {
	now := p.clock.Now()
	id, thread := p.in(modelID(s.ID)), p.in(modelThread)
	h := queue.Hold{Thread: thread, Dispatch: p.in(p.model.lastHolder(s.Token)), Token: p.model.lastToken(s.Token)}
	p.count++
	name := fmt.Sprint("n", p.count)
	switch s.Do {
	case doEnqueue, doInline:
		return p.enqueue(ctx, s, now)
	case doClaim:
		k, ok, err := p.queue.Claim(ctx, thread, p.request())
		if ok && (string(k.Dispatch.Request) != p.out(k.Dispatch.ID) || k.Claim.Owner != modelOwner) {
			return fmt.Sprintf("%q has the request %q, claimed by %q", k.Dispatch.ID, k.Dispatch.Request, k.Claim.Owner)
		}
		return p.claimed(k, ok, err)
	case doExtend:
		c, err := p.queue.Extend(ctx, h, lease)
		return answer(true, err) + asked(c.Stop != "", c.Paused)
	case doSettle:
		_, err := p.queue.Settle(ctx, h, queue.Settlement{Verdict: s.Verdict, RetryAt: now.Add(s.Delay), Error: "boom", Result: s.result(now)})
		return answer(true, err)
	case doCommit:
		return answer(true, p.queue.Commit(ctx, h, queue.Commit{
			ID: name, From: len(p.model.log), Append: []queue.Message{{ID: name}}, Result: s.result(now), Progress: s.Internal,
		}))
	case doInterrupt:
		out, err := p.queue.Interrupt(ctx, thread, queue.Interrupt{ID: name, Keep: func(d queue.Dispatch) bool { return s.Internal && d.Origin == "internal" }})
		return fmt.Sprintf("%s, superseded %d, kept %d", answer(true, err), len(out.Superseded), out.Kept)
	case doWait:
		p.clock.Add(modelWait(s))
		return "ok"
	default:
		return p.control(ctx, s, id, name)
	}
}

func (p *player) control(ctx context.Context, s step, id, name string) string {
	thread := p.in(modelThread)
	switch s.Do {
	case doCancel:
		_, ok, err := p.queue.Cancel(ctx, id, "no more")
		return answer(ok, err)
	case doCancelRun:
		ok, err := p.queue.CancelRun(ctx, thread, p.in(p.model.runID(s.ID)), "no more")
		return answer(ok, err)
	case doExpire:
		k, ok, err := p.queue.Expire(ctx, thread)
		return p.claimed(k, ok, err)
	case doLapse:
		run, err := p.queue.Lapse(ctx, thread)
		return answer(run != "", err)
	case doReplay:
		_, err := p.queue.Replay(ctx, id, p.in("run-"+name))
		return answer(true, err)
	case doDiscard:
		return answer(true, p.queue.Discard(ctx, id))
	case doDrop:
		return answer(true, p.queue.Drop(ctx, thread))
	case doPause:
		_, err := p.queue.Pause(ctx, thread, s.Internal)
		return answer(true, err)
	case doTenant:
		if s.Fault == FaultTwice { // a batch without a base meets no conflict
			p.fault.Store(nil)
		}
		return answer(true, p.queue.PauseTenant(ctx, p.in(modelTenant), s.Internal))
	case doPoll:
		return p.poll(ctx)
	default:
		return "no such step"
	}
}

// poll compares whether a process that leaves out paused tenants is offered the thread with what can be done for it. The thread may be offered
// too early, but never too late.
func (p *player) poll(ctx context.Context) string {
	tenants, err := p.queue.Pauses(ctx)
	if err != nil {
		return answer(true, err)
	}
	if got := slices.Contains(tenants, p.in(modelTenant)); got != p.model.halted {
		return fmt.Sprintf("the tenant is paused: %v, want %v", got, p.model.halted)
	}
	now := p.clock.Now()
	due, _, err := p.queue.Due(ctx, queue.DueQuery{By: now, Skip: tenants, Limit: 2 * modelShare})
	offered := slices.Contains(names(due), p.in(modelThread))
	at, some := p.model.soonest(now)
	switch wanted := some && !at.After(now) && (p.model.claim == nil || now.After(at)); {
	case offered && p.model.halted:
		return "a thread of a paused tenant is offered"
	case wanted && !offered && !p.model.halted && err == nil:
		return "the thread is not offered, and something can be done for it"
	}
	return answer(true, err)
}

func (p *player) request() queue.ClaimRequest {
	return queue.ClaimRequest{Token: fmt.Sprint("token", p.count), Owner: modelOwner, Lease: lease, Instance: "i", NewRun: p.in(fmt.Sprint("run-n", p.count))}
}

func (p *player) enqueue(ctx context.Context, s step, now time.Time) string {
	e := queue.Entry{
		ID: p.in(modelID(s.ID)), Thread: p.in(modelThread), Tenant: p.in(modelTenant), NewRun: p.in(fmt.Sprint("run-n", p.count)), Priority: s.Priority, Dedupe: s.Dedupe,
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
	return fmt.Sprint("ok ", p.out(k.Dispatch.ID), " ", k.Dispatch.Status)
}

// modelWait is how far a step moves the clock: to just before, at and after the end of a lease, too.
func modelWait(s step) time.Duration {
	far := []time.Duration{time.Millisecond, time.Second, lease, lease + time.Second, time.Minute}
	return far[s.ID%len(far)]
}

func (s step) result(now time.Time) queue.Result {
	r := queue.Result{Status: s.Result}
	if s.Result == queue.RunWaiting {
		r.Wait = modelWaits
		if s.ID > 0 {
			r.WaitUntil = now.Add(time.Second)
		}
	}
	return r
}

func (p *player) claimed(k queue.State, ok bool, err error) string {
	if err != nil || !ok {
		return answer(ok, err)
	}
	return "ok " + p.out(k.Dispatch.ID)
}

// asked names what the holder of a claim is asked by the answer to an extension.
func asked(stop, paused bool) string { return fmt.Sprintf(", stop %v, paused %v", stop, paused) }

// answer names how a transition came out.
func answer(ok bool, err error) string {
	for _, known := range []error{queue.ErrNotFound, queue.ErrExists, queue.ErrConflict, queue.ErrFull, queue.ErrPaused, queue.ErrBusy, queue.ErrInvalid} {
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
	list, err := p.queue.Messages(ctx, p.in(modelThread), 1, modelSteps)
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

// in and out translate between names of the model and of the store.
func (p *player) in(id string) string {
	if id == "" {
		return ""
	}
	return p.prefix + id
}

func (p *player) out(id string) string { return strings.TrimPrefix(id, p.prefix) }

// decoded decodes the cells of a kind.
func decoded[T any](s store.Snapshot, kind string) (out []T, err error) {
	for _, c := range s.Cells {
		var v T
		if c.Kind == kind {
			err = errors.Join(err, json.Unmarshal(c.Value, &v))
			out = append(out, v)
		}
	}
	return out, err
}

// snapshot reads all cells of the thread.
func (p *player) snapshot(ctx context.Context) (snapshot, string) {
	kinds := []string{"thread", "dispatch", "request", "run", "queue"}
	var q store.Query
	for _, kind := range kinds {
		q.Cells = append(q.Cells, store.All(kind))
	}
	s, err := p.store.Read(ctx, p.in(modelThread), q)
	if err != nil {
		return snapshot{}, err.Error()
	}
	threads, err := decoded[queue.Thread](s, "thread")
	dispatches, err1 := decoded[queue.Dispatch](s, "dispatch")
	runs, err2 := decoded[queue.Run](s, "run")
	queued, err3 := decoded[struct{ ID string }](s, "queue")
	if err := errors.Join(err, err1, err2, err3); err != nil {
		return snapshot{}, err.Error()
	}
	out := snapshot{halted: p.model.halted} // which doPoll compares
	for _, t := range threads {
		out.paused = !t.PausedAt.IsZero()
		out.epoch, out.fence, out.queued, out.log, out.open, out.due = t.Epoch, t.Fence, t.Queued, t.Messages, p.out(t.Open.ID), t.DueAt
		if c := t.Claim; c != nil {
			out.claim, out.until, out.stop = p.out(c.Dispatch)+" "+c.Token, c.Until, c.Stop != ""
		}
	}
	order := []string{}
	for _, e := range queued {
		order = append(order, p.out(e.ID))
	}
	out.queue = fmt.Sprint(order)
	for _, d := range dispatches {
		id := p.out(d.ID)
		if request, ok := s.Cell("request", d.ID); !ok || string(request) != id {
			return out, fmt.Sprintf("the request of %s is %q", id, request)
		}
		out.items = append(out.items, item{id, string(d.Status), d.Attempts, d.Postponed, d.Epoch, d.Seq, d.AvailableAt, d.Holding, d.End, p.out(d.RunID)})
	}
	for _, r := range runs {
		out.items = append(out.items, item{id: p.out(r.ID), status: fmt.Sprint(r.Status, " ", r.Termination, r.Wait), run: p.out(r.Dispatch)})
	}
	slices.SortFunc(out.items, item.compare)
	return out, ""
}
