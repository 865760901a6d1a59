package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/serve"
)

// live executes a prompt and shows the run on the terminal.
type live struct {
	p         *program
	out       *console
	approvals *approvals
	// outcome is that of the latest execution, nil when it failed.
	outcome *agent.Result
}

// runLive is mortise run PROMPT.
func runLive(ctx context.Context, s Streams, prompt string, o runOptions) error {
	out := newConsole(s, o)
	ask, err := newApprovals(s, o.approve, out)
	if err != nil {
		return with(ExitUsage, err)
	}
	cfg, note, err := s.links.liveConfig(o)
	if err != nil {
		return with(ExitConfig, err)
	}
	if note != "" {
		out.say("%s", note)
	}
	out.thread = cfg.Store != ""
	logger := slog.New(slog.NewTextHandler(out.log(), &slog.HandlerOptions{Level: o.logLevel}))
	if o.quiet && !o.logSet {
		logger = slog.New(slog.DiscardHandler)
	}
	p, err := openLive(ctx, cfg, logger, newProgress(out.log(), o.quiet))
	if err == nil {
		err = (&live{p: p, out: out, approvals: ask}).run(ctx, prompt, o)
	}
	out.end()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	err = errors.Join(err, with(ExitRun, p.close(closing)))
	if ctx.Err() != nil {
		return &coded{ExitInterrupted, errors.New("interrupted")}
	}
	return err
}

// leaseOfRun is how long the thread of a live run that was killed stays claimed.
const leaseOfRun = 10 * time.Second

// stopWait is how long a run on the same thread has to yield.
const stopWait = 5 * time.Second

// liveMailbox configures the mailbox of one run. Its loop is not started: the requests of others that the store has are not
// this process's to execute.
func liveMailbox(c *mailbox.Config) {
	const events, eventBytes = 1 << 20, 64 << 20
	c.Lease.Duration = cmp.Or(c.Lease.Duration, leaseOfRun)
	c.Lease.Renew = c.Lease.Duration / renewals
	c.Waits.Stop = c.Lease.Duration + stopWait // for one that was killed on the same thread
	c.Events.Count, c.Events.Bytes = events, eventBytes
}

// run submits the prompt, and decisions for as long as the run waits for some.
func (v *live) run(ctx context.Context, prompt string, o runOptions) error {
	if err := v.p.runtime.Tasks().Recover(ctx); err != nil {
		return fmt.Errorf("background tasks: %w", err)
	}
	input, err := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(prompt)}})
	if err != nil {
		return with(ExitUsage, fmt.Errorf("prompt: %w", err))
	}
	request := mailbox.Request{Thread: o.thread, Agent: o.agent, Messages: input}
	for {
		run, d, err := v.execute(ctx, request)
		if err != nil {
			return with(ExitRun, err)
		}
		if run.Status == mailbox.RunDone {
			v.out.event(serve.SettledOf(run, d))
			return v.end(ctx, run)
		}
		list, err := v.decide(ctx, run)
		if err != nil {
			return with(ExitRun, errors.Join(err, v.cancel(ctx, run.ID)))
		}
		request = mailbox.Request{Thread: run.Thread, Run: run.ID, Decisions: list}
	}
}

// execute submits a request in the foreground and shows its events until this process is done with it.
func (v *live) execute(ctx context.Context, r mailbox.Request) (run mailbox.Run, d mailbox.Dispatch, err error) {
	box := v.p.runtime.Mailbox()
	r.Adapter, r.MaxAttempts = "cli", 1 // the user decides whether to try again
	busy := time.AfterFunc(time.Second, func() { v.out.say("waiting for the run before on thread %s to end", r.Thread) })
	sub, err := box.Submit(ctx, r)
	busy.Stop()
	if errors.Is(err, mailbox.ErrBusy) {
		return run, d, fmt.Errorf("%w: another process executes a run of this thread; try again when it has ended, or use another thread", err)
	}
	if err != nil {
		return run, d, err
	}
	after, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	stop := context.AfterFunc(ctx, func() {
		time.AfterFunc(closeTimeout, cancel)
		if err := v.cancel(ctx, sub.Run); err != nil { // else its end is in the stream
			v.out.say("the run could not be interrupted: %v", err)
		}
	})
	defer stop()
	if d, _, err = box.Dispatch(after, sub.Dispatch); err != nil {
		return run, d, err
	}
	if err = v.follow(after, sub.Events, d); err == nil {
		run, _, err = box.Run(after, sub.Run)
	}
	return run, d, err
}

// cancel ends a run, also when the command is interrupted.
func (v *live) cancel(ctx context.Context, run string) error {
	_, err := v.p.runtime.Mailbox().CancelRun(context.WithoutCancel(ctx), run)
	return err
}

// follow shows the events of a dispatch until it ends.
func (v *live) follow(ctx context.Context, events *mailbox.Feed, d mailbox.Dispatch) error {
	var gap *mailbox.GapError
	for seq := uint64(0); ; {
		e, err := events.Next(ctx, seq)
		switch {
		case errors.Is(err, mailbox.ErrEnd):
			return nil
		case errors.As(err, &gap):
			v.out.say("some output of the run was dropped: it came faster than it could be written")
			seq = gap.Next
			continue
		case err != nil:
			return err
		}
		seq = e.Seq
		if wire, ok := serve.EventOf(e, d); ok {
			v.out.event(wire)
		}
		v.show(e)
	}
}

// decide asks for what a waiting run needs.
func (v *live) decide(ctx context.Context, run mailbox.Run) ([]mailbox.Decision, error) {
	image, err := v.p.runtime.Mailbox().Image(ctx, run.Thread)
	if err != nil {
		return nil, err
	}
	record, err := agentrun.DecodeRun(image)
	if err != nil {
		return nil, err
	}
	if record.Waiting == nil || len(record.Waiting.Tickets) == 0 {
		return nil, fmt.Errorf("the run waits for %s, which mortise run cannot answer; use mortise serve", visible(run.Wait))
	}
	list, err := v.approvals.decide(ctx, record.Waiting.Tickets)
	if err != nil {
		return nil, err
	}
	return agentrun.Decisions(list...)
}

// end reports how a run came out.
func (v *live) end(ctx context.Context, run mailbox.Run) error {
	v.out.answer(run.Output)
	var record agent.Record
	v.out.sum(run, recordOf(run, &record))
	v.await(ctx, run.Thread)
	if v.outcome == nil || run.Error != "" {
		return with(ExitRun, fmt.Errorf("the run failed: %s", visible(cmp.Or(run.Error, run.Termination))))
	}
	switch t := v.outcome.Termination; t.Type {
	case agent.NaturalEnd:
		return nil
	case agent.Stopped:
		return with(ExitRun, fmt.Errorf("the run was stopped before its end: %s", visible(cmp.Or(t.Detail, t.Code))))
	case agent.Blocked:
		return with(ExitRun, fmt.Errorf("the run was blocked: %s", visible(t.Detail)))
	case agent.Cancelled, agent.Suspended, agent.Failed:
	}
	return with(ExitRun, fmt.Errorf("the run ended: %s", visible(run.Termination)))
}

// compactionPatience is how long the command stays for a compaction that is under way.
const compactionPatience = 30 * time.Second

// await waits for a compaction of the thread, so that a thread whose runs are short is compacted, too. Its result
// reaches the thread's next run.
func (v *live) await(ctx context.Context, thread string) {
	under := func(i background.Info) bool { return !i.Status.Terminal() }
	if v.p.cfg.home == nil || !slices.ContainsFunc(v.p.runtime.Tasks().List(thread), under) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, compactionPatience)
	defer cancel()
	v.out.say("a compaction of this thread is under way; waiting for it (Ctrl-C leaves it)")
	if err := v.p.runtime.Tasks().Wait(ctx, thread); err == nil {
		v.out.say("it is done; the next run of this thread begins with the result")
	}
}
