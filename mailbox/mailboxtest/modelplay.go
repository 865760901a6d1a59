package mailboxtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/store"
)

// player runs steps on a thread of a store, by two processes that do nothing but what the steps say. Its faults happen once for each step.
type player struct {
	store store.Store
	// processes take turns, by threes: what one remembers, the other has changed. process is the one whose turn it is.
	processes [2]*mailbox.Mailbox
	process   int
	hands     *hands
	// jobs are the executions of all claims, and renewed receives when a lease was renewed, or could not be.
	jobs    []*hand
	renewed chan struct{}
	clock   *Clock
	fault   atomic.Pointer[Fault]
	model   *model
	// count makes ids of runs and commits, aliases has the model's names of runs whose ids the mailbox has made.
	count   int
	aliases map[string]string
	// prefix is that of all names in the store, and taken counts the steps that changed something.
	prefix string
	taken  map[action]int
}

// modelThread is the thread of each player, in its own part of the store, of the tenant modelTenant, and modelWaits what runs wait for.
const (
	modelThread = "t"
	modelTenant = "acme"
	modelOwner  = "worker"
	modelWaits  = "tool_permission"
	modelLease  = time.Hour
	modelStop   = 500 * time.Millisecond
	// modelStuck is how long a step may take.
	modelStuck = 15 * time.Second
	// modelShorten is for how long a schedule that went wrong is shortened.
	modelShorten = 20 * time.Second
)

func newPlayer(ctx context.Context, one, other store.Store, name int) (*player, error) {
	p := &player{
		clock: NewClock(), model: newModel(), prefix: fmt.Sprintf("m%d/", name), taken: map[action]int{}, store: one, hands: newHands(),
		renewed: make(chan struct{}, 8), aliases: map[string]string{},
	}
	for i, s := range []store.Store{one, other} {
		var err error
		p.processes[i], err = mailbox.New(ctx, mailbox.Config{
			Store: &narrow{Store: &Faulty{Store: s, Plan: p.plan}, thread: p.in(modelThread)}, Runtime: p.hands, Owner: modelOwner, Now: p.clock.Now,
			Lease: mailbox.Lease{Duration: modelLease, Renew: modelLease - time.Minute, Skew: -1}, Limits: mailbox.Limits{Depth: modelDepth},
			Waits: mailbox.Waits{Stop: modelStop, Live: modelStuck, Close: time.Second}, Retry: mailbox.Retry{Delay: time.Millisecond},
			Events: mailbox.Events{Pause: -1}, Poll: time.Nanosecond, Observers: []mailbox.Observer{renewals{p.renewed}},
		})
		if err != nil {
			return nil, err
		}
	}
	return p, nil
}

// close ends what is still executed, and waits so long for it.
func (p *player) close(ctx context.Context, wait time.Duration) {
	close(p.hands.quit)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), wait)
	defer cancel()
	for _, m := range p.processes {
		_ = m.Close(ctx) // it may have lost what it executes
	}
}

// narrow is a store in which one thread alone becomes due: that of a player. Schedules share a store.
type narrow struct {
	store.Store

	thread string
}

func (n *narrow) Scan(ctx context.Context, s store.Scan) ([]store.Ref, error) {
	if s.Index != "ready" && s.Index != "later" {
		return n.Store.Scan(ctx, s)
	}
	limit := s.Limit
	s.Limit = 4 * modelShare
	list, err := n.Store.Scan(ctx, s)
	list = slices.DeleteFunc(list, func(r store.Ref) bool { return r.Thread != n.thread })
	return list[:min(len(list), limit)], err
}

// renewals is an observer that counts renewals of leases.
type renewals struct{ done chan<- struct{} }

func (r renewals) Operation(ctx context.Context, o mailbox.Operation) (context.Context, func(string, error)) {
	return ctx, func(string, error) {
		if o.Name == "lease_renewal" {
			r.done <- struct{}{}
		}
	}
}

func (renewals) Execution(ctx context.Context, _ *mailbox.Job) (context.Context, func(mailbox.Outcome, error)) {
	return ctx, func(mailbox.Outcome, error) {}
}
func (renewals) Settled(context.Context, mailbox.Dispatch, mailbox.Run) {}

// play takes steps and returns what went wrong first.
func (p *player) play(ctx context.Context, steps []step) string {
	before := p.model.snapshot()
	for i, s := range steps {
		now := p.clock.Now()
		p.process = modelProcess(i)
		p.fault.Store(&s.Fault)
		got := p.do(ctx, s)
		p.fault.Store(nil)
		want := p.model.do(s, p.process, now)
		if got != want {
			return fmt.Sprintf("step %d, %s: the answer is %q, want %q", i, s.Do, got, want)
		}
		after, trouble := p.snapshot(ctx)
		if trouble == "" {
			trouble = cmp.Or(p.readLog(ctx), p.causes())
		}
		if expected := p.model.snapshot(); trouble == "" && !after.equal(expected) {
			trouble = fmt.Sprintf("the state is\n%+v, want\n%+v", after, expected)
		}
		if trouble == "" {
			trouble = p.model.invariants(after, p.clock.Now())
		}
		if trouble == "" && s.Do == doPoll && before.equal(after) {
			trouble = p.model.rests(after, now)
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

// modelProcess is the process that takes a step.
func modelProcess(i int) int { return i % 6 / 3 }

// plan gives the first write of a step its fault. There are no commands from one process to the other: a holder learns what it is asked when
// its lease is renewed.
func (p *player) plan(_ context.Context, operation string) Fault {
	if operation == "watch" {
		return FaultBefore
	}
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
	m, now := p.processes[p.process], p.clock.Now()
	id, thread := p.in(modelID(s.ID)), p.in(modelThread)
	p.count++
	switch s.Do {
	case doEnqueue:
		sub, err := m.SubmitBackground(ctx, p.request(s, now))
		if err != nil {
			return answer(false, err)
		}
		return fmt.Sprintf("ok, again %v", sub.Repeated)
	case doInline:
		return p.inline(ctx, m, s)
	case doPoll:
		return p.poll(ctx, m, now)
	case doExtend, doCommit, doSettle:
		if j := p.model.job(s.Token); j != nil {
			//nolint:contextcheck // the execution has its own
			return p.work(s, j, p.jobs[len(p.jobs)-1-s.Token], now)
		}
		return "skipped"
	case doInterrupt:
		out, err := m.Interrupt(ctx, thread)
		return fmt.Sprintf("%s, superseded %d, kept %d", answer(true, err), len(out.Superseded), out.Kept)
	case doWait:
		p.clock.Add(modelWait(s))
		return "ok"
	default:
		return p.control(ctx, m, s, id)
	}
}

func (p *player) control(ctx context.Context, m *mailbox.Mailbox, s step, id string) (out string) {
	thread, tenant := p.in(modelThread), p.in(modelTenant)
	var err error
	ok := true
	switch {
	case s.Do == doCancel:
		ok, err = m.Cancel(ctx, id)
	case s.Do == doCancelRun:
		ok, err = m.CancelRun(ctx, p.real(p.model.runID(s.ID)))
	case s.Do == doReplay:
		var sub mailbox.Submission
		if sub, err = m.Replay(ctx, id); err == nil {
			p.aliases[sub.Run] = p.run()
		}
	case s.Do == doDiscard:
		err = m.Discard(ctx, id)
	case s.Do == doDrop:
		err = m.Drop(ctx, thread)
	case s.Do == doPause && s.Internal:
		_, err = m.PauseThread(ctx, thread)
	case s.Do == doPause:
		_, err = m.ResumeThread(ctx, thread)
	case s.Do == doTenant:
		if s.Fault == FaultTwice { // a batch without a base meets no conflict
			p.fault.Store(nil)
		}
		change := m.Resume
		if s.Internal {
			change = m.Pause
		}
		err = change(ctx, tenant)
	default:
		return "no such step"
	}
	return answer(ok, err)
}

func (p *player) run() string { return fmt.Sprint("run-n", p.count) }

func (p *player) request(s step, now time.Time) mailbox.Request {
	r := request(p.in(modelThread), p.in(modelID(s.ID)))
	r.Tenant, r.NewRun, r.Priority, r.Dedupe, r.MaxAttempts = p.in(modelTenant), p.in(p.run()), int8(int(s.Priority)-128), s.Dedupe, s.Max //nolint:gosec // from 0 to 255
	r.At = now.Add(s.Delay)
	if s.Internal {
		r.Origin = mailbox.OriginInternal
	}
	return r
}

// inline submits a foreground request. One for a thread that is claimed would wait for the holder.
func (p *player) inline(ctx context.Context, m *mailbox.Mailbox, s step) string {
	if p.model.claim != nil {
		return "skipped"
	}
	r := p.request(s, p.clock.Now())
	r.At = time.Time{}
	if _, err := m.Submit(ctx, r); err != nil {
		return answer(false, err)
	}
	return cmp.Or(p.begun(), "ok")
}

// begun receives an execution that has begun, and checks what it was given.
func (p *player) begun() (trouble string) {
	select {
	case x := <-p.hands.begun:
		d := x.Dispatch
		p.jobs = append(p.jobs, x)
		if !strings.HasPrefix(p.out(x.Run.ID), "run-") {
			p.aliases[x.Run.ID] = p.run()
		}
		if in := x.Request.Messages; len(in) != 1 || string(in[0].Data) != d.ID || d.Owner != modelOwner || x.Fence != d.Fence || x.Request.Tenant != p.in(modelTenant) {
			return fmt.Sprintf("%q has the request %+v, claimed by %q", d.ID, x.Request, d.Owner)
		}
		return ""
	case <-time.After(modelStuck):
		return "an execution did not begin"
	}
}

// poll lets a process do what the thread is due for.
func (p *player) poll(ctx context.Context, m *mailbox.Mailbox, now time.Time) string {
	own, c := p.model.keeper(p.process) != nil, p.model.claim
	if _, err := m.Poll(ctx); err != nil {
		return answer(false, err)
	}
	if own && !p.model.halted && !now.Before(c.until) {
		return p.isRenewed()
	}
	begun := slices.DeleteFunc(m.Executing(), func(d mailbox.Dispatch) bool {
		return slices.ContainsFunc(p.jobs, func(x *hand) bool { return x.Dispatch.Token == d.Token })
	})
	if len(begun) == 0 {
		return "ok"
	}
	return cmp.Or(p.begun(), "ok, began "+p.out(begun[0].ID))
}

// isRenewed waits until a lease was renewed, or refused to be.
func (p *player) isRenewed() string {
	select {
	case <-p.renewed:
		return "ok"
	case <-time.After(modelStuck):
		return "a lease was not renewed"
	}
}

// work lets an execution do something.
func (p *player) work(s step, j *modelJob, x *hand, now time.Time) string {
	switch {
	case s.Do == doCommit:
		name := fmt.Sprint("n", p.count)
		return answer(true, x.commit(mailbox.Commit{
			ID: name, From: len(p.model.log), Append: []mailbox.Message{{ID: name}}, Result: s.result(now), Progress: s.Internal,
		}))
	case s.Do == doExtend && j.cause != nil:
		return "skipped"
	case s.Do == doExtend:
		x.Suspended(false)
		return p.isRenewed()
	}
	o := outcome{err: errors.New("boom")}
	switch s.End {
	case endAck:
		o = outcome{result: s.result(now)}
	case endBury:
		o.err = mailbox.ErrPermanent
	case endPostpone:
		o.err = mailbox.Postpone(now.Add(s.Delay), "", o.err)
	default:
		o.err = mailbox.RetryAt(now.Add(s.Delay), o.err)
	}
	x.end <- o
	settled(p.processes[j.process], x.Dispatch.Token)
	return "ok"
}

// causes compares whether executions were asked to end, and why.
func (p *player) causes() string {
	for i, j := range p.model.jobs {
		if j.over {
			continue
		}
		ctx := p.jobs[i].ctx
		if j.cause != nil {
			select {
			case <-ctx.Done():
			case <-time.After(modelStuck):
			}
		}
		if got := context.Cause(ctx); !errors.Is(got, j.cause) {
			return fmt.Sprintf("execution %d ends for %v, want %v", i, got, j.cause)
		}
	}
	return ""
}

// modelWait is how far a step moves the clock: to just before, at and after the end of a lease, too.
func modelWait(s step) time.Duration {
	far := []time.Duration{time.Millisecond, time.Second, modelLease, modelLease + time.Second, time.Minute}
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

// answer names how a transition came out.
func answer(ok bool, err error) string {
	for _, known := range []error{mailbox.ErrNotFound, mailbox.ErrExists, mailbox.ErrConflict, mailbox.ErrFull, mailbox.ErrPaused, mailbox.ErrBusy, mailbox.ErrInvalid} {
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
