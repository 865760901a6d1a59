package livecmd

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
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/config"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/mailbox"
	"github.com/mortise-dev/mortise/mailbox/agentrun"
	"github.com/mortise-dev/mortise/serve"
)

// live executes a prompt and shows the run on the terminal.
type live struct {
	p         *program.Program
	out       *console
	approvals *approvals
	// denied are the reasons of tickets that were denied here.
	denied map[string]string
	// outcome is that of the latest execution, nil when it failed.
	outcome *agent.Result
}

// Run is mortise run PROMPT.
func Run(ctx context.Context, s command.Streams, prompt string, o Options) error {
	out := newConsole(s, o)
	ask, err := newApprovals(s, o.Approve, out)
	if err != nil {
		return exit.With(exit.Usage, err)
	}
	cfg, note, err := liveConfig(s.Links, o)
	if err != nil {
		return exit.With(exit.Config, err)
	}
	if note != "" {
		out.say("%s", note)
	}
	out.thread = cfg.Store != ""
	if o.Store == config.InMemory {
		out.say("store memory: the thread is not kept")
	}
	logger := slog.New(slog.NewTextHandler(out.log(), &slog.HandlerOptions{Level: o.LogLevel}))
	if o.Quiet && !o.LogSet {
		logger = slog.New(slog.DiscardHandler)
	}
	p, err := program.OpenLive(ctx, cfg, logger, term.NewProgress(out.log(), o.Quiet).Say)
	if err == nil {
		err = (&live{p: p, out: out, approvals: ask}).run(ctx, prompt, o)
	}
	out.end()
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), program.CloseTimeout)
	defer cancel()
	err = errors.Join(err, exit.With(exit.Run, p.Close(closing)))
	if ctx.Err() != nil {
		return exit.Always(exit.Interrupted, errors.New("interrupted"))
	}
	return err
}

// run submits the prompt, and decisions for as long as the run waits for some.
func (v *live) run(ctx context.Context, prompt string, o Options) error {
	if err := v.p.Runtime.Tasks().Recover(ctx); err != nil {
		return fmt.Errorf("background tasks: %w", err)
	}
	input, err := agentrun.Inputs(abi.Message{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(prompt)}})
	if err != nil {
		return exit.With(exit.Usage, fmt.Errorf("prompt: %w", err))
	}
	request := mailbox.Request{Thread: o.Thread, Agent: o.Agent, Messages: input}
	for {
		run, d, err := v.execute(ctx, request)
		if err != nil {
			return exit.With(exit.Run, err)
		}
		if run.Status == mailbox.RunDone {
			v.out.event(serve.SettledOf(run, d))
			return v.end(ctx, run)
		}
		list, err := v.decide(ctx, run)
		if err != nil {
			return exit.With(exit.Run, errors.Join(err, v.cancel(ctx, run.ID)))
		}
		request = mailbox.Request{Thread: run.Thread, Run: run.ID, Decisions: list}
	}
}

// execute submits a request in the foreground and shows its events until this process is done with it.
func (v *live) execute(ctx context.Context, r mailbox.Request) (run mailbox.Run, d mailbox.Dispatch, err error) {
	box := v.p.Runtime.Mailbox()
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
		time.AfterFunc(program.CloseTimeout, cancel)
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
	_, err := v.p.Runtime.Mailbox().CancelRun(context.WithoutCancel(ctx), run)
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
	image, err := v.p.Runtime.Mailbox().Image(ctx, run.Thread)
	if err != nil {
		return nil, err
	}
	record, err := agentrun.DecodeRun(image)
	if err != nil {
		return nil, err
	}
	if record.Waiting == nil || len(record.Waiting.Tickets) == 0 {
		return nil, fmt.Errorf("the run waits for %s, which mortise run cannot answer; use mortise serve", term.Visible(run.Wait))
	}
	list, err := v.approvals.decide(ctx, record.Waiting.Tickets)
	if err != nil {
		return nil, err
	}
	v.denied = map[string]string{}
	for i := range list {
		d := &list[i]
		if d.By = "mortise run"; d.Action == agent.ActionCancel { // at a terminal, or by --approve
			v.denied[d.Target] = d.Reason
		}
	}
	return agentrun.Decisions(list...)
}

// end reports how a run came out.
func (v *live) end(ctx context.Context, run mailbox.Run) error {
	v.out.answer(run.Response)
	var record agent.Record
	v.out.sum(run, recordOf(run, &record))
	v.await(ctx, run.Thread)
	if v.outcome == nil || run.Error != "" {
		return exit.With(exit.Run, fmt.Errorf("the run failed: %s", term.Visible(cmp.Or(run.Error, run.Termination))))
	}
	switch t := v.outcome.Termination; t.Type {
	case agent.NaturalEnd:
		return nil
	case agent.Stopped:
		return exit.With(exit.Run, fmt.Errorf("the run was stopped before its end: %s", term.Visible(cmp.Or(t.Detail, t.Code))))
	case agent.Blocked:
		return exit.With(exit.Run, fmt.Errorf("the run was blocked: %s", term.Visible(t.Detail)))
	case agent.Cancelled, agent.Suspended, agent.Failed:
	}
	return exit.With(exit.Run, fmt.Errorf("the run ended: %s", term.Visible(run.Termination)))
}

// compactionPatience is how long the command stays for a compaction that is under way.
const compactionPatience = 30 * time.Second

// await waits for a compaction of the thread, so that a thread whose runs are short is compacted, too. Its result
// reaches the thread's next run.
func (v *live) await(ctx context.Context, thread string) {
	under := func(i background.Info) bool { return !i.Status.Terminal() }
	if v.p.Cfg.Home == nil || !slices.ContainsFunc(v.p.Runtime.Tasks().List(thread), under) {
		return
	}
	ctx, cancel := context.WithTimeout(ctx, compactionPatience)
	defer cancel()
	v.out.say("a compaction of this thread is under way; waiting for it (Ctrl-C leaves it)")
	if err := v.p.Runtime.Tasks().Wait(ctx, thread); err == nil {
		v.out.say("it is done; the next run of this thread begins with the result")
	}
}
