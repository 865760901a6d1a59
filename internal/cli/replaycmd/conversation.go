package replaycmd

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/background"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/llm/replay"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// conversation is one replay under way.
type conversation struct {
	id        string
	replay    *replay.Replay
	agent     *agent.Agent
	tasks     *taskDesk
	compactor *compaction.Compactor
	progress  *replayProgress
	collector *collector
	// calls counts the tool calls of the step under way.
	calls int
	// waiting are the calls that the last run left waiting for a decision.
	waiting []agent.Ticket
	// ended is why the recording was not played to its end.
	ended string
	// keeper writes the log into the session's store, nil for none.
	keeper *keeper
}

// replayConversation plays one conversation to its end. The error joins those of
// its runs; a run that failed does not keep the next one from starting.
func replayConversation(
	ctx context.Context, parts *program.Parts, c transcript.Conversation, logger *slog.Logger, p *replayProgress, col *collector,
) error {
	v := &conversation{id: c.ID, progress: p, collector: col}
	if err := v.wire(ctx, parts, c, logger); err != nil {
		if v.tasks != nil {
			err = errors.Join(err, v.tasks.close(ctx))
		}
		return fmt.Errorf("conversation %s: %w", c.ID, err)
	}
	failures := v.play(ctx)
	if ctx.Err() == nil {
		// What is still in flight is waited for, and swapped in.
		failures = append(failures, v.tasks.Wait(ctx, v.id))
		v.agent.Settle(ctx, v.id)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), program.CloseTimeout)
	defer cancel()
	failures = append(failures, v.tasks.close(closing), v.keeper.finish(closing))
	col.thread(v.result())
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("conversation %s: %w", c.ID, err)
	}
	return nil
}

// wire joins replay, tasks, compactor and agent.
func (v *conversation) wire(ctx context.Context, parts *program.Parts, c transcript.Conversation, logger *slog.Logger) error {
	var err error
	v.replay, err = replay.New(c, replay.Config{Pace: time.Duration(parts.Cfg.Replay.Pace)})
	if err != nil {
		return err
	}
	if v.tasks, err = openTasks(ctx, parts.Cfg, logger); err != nil {
		return err
	}
	// Those that ended with the process before have told so when the first run begins.
	if err := v.tasks.Wait(ctx, v.id); err != nil {
		return err
	}
	tools, err := v.tasks.tools(v.id, &toolbox{v.replay, parts.Tools, v.collector.tool}, v.stop)
	if err != nil {
		return err
	}
	if parts.Shared.Masks {
		tools = agent.LayerTools(tools, v.tasks.blobs.Tools(v.id))
	}
	prompt := parts.Cfg.Agent.SystemPrompt
	if recorded := v.replay.SystemPrompt(); recorded != "" {
		prompt = recorded
	}
	fired, err := parts.Phases(v.collector.record, logger, recording{v.replay}, v.tasks.Plugin())
	if err != nil {
		return err
	}
	if v.keeper, err = newKeeper(ctx, parts.Shared.Threads, v.id); err != nil {
		return err
	}
	run := agent.Config{
		Profile:       agent.Profile{Model: v.replay, Tools: tools, Phases: fired, SystemPrompt: prompt},
		Notifications: agent.Notifications{Take: v.tasks.take, Words: parts.Cfg.Tasks.Words}, Execution: agent.Execution{ToolContext: background.ToolContext},
		Limits: agent.Limits{MaxRounds: -1}, Listen: v.event, Logger: logger, Inference: agent.Inference{Observe: parts.Shared.Observe},
	}
	if parts.Cfg.Agent.MaxRounds != 0 {
		run.MaxRounds = parts.Cfg.Agent.MaxRounds
	}
	if parts.Summarizer != nil {
		if v.compactor, err = newCompactor(parts, v.tasks, v.keeper, v.compaction, v.replay.Time, logger); err != nil { //nolint:contextcheck // see there
			return err
		}
		run.Compactor = unbilled{v.compactor}
	}
	if v.agent, err = agent.New(run); err != nil {
		return err
	}
	v.keeper.follow(func() []abi.Message { return v.agent.Thread(v.id).Messages() })
	return v.goOn(ctx, c)
}

// stop cancels a run.
func (v *conversation) stop(runID string) {
	if c, err := v.agent.Control(runID); err == nil {
		c.Cancel()
	}
}

// play runs turn after turn until the recording or the context ends.
func (v *conversation) play(ctx context.Context) []error {
	var failures []error
	for turn, ok := v.replay.Next(); ok && ctx.Err() == nil; turn, ok = v.replay.Next() {
		if turn.Answered {
			if err := v.run(ctx, turn.Messages); err != nil {
				failures = append(failures, err)
			}
			if v.ended != "" {
				break
			}
			continue
		}
		// The recording has no answer: the messages come one by one.
		for _, m := range turn.Messages {
			if err := v.agent.Append(ctx, v.id, m); err != nil {
				failures = append(failures, err)
			}
			v.position(ctx)
		}
	}
	return failures
}

// run runs one turn, and says in ended if the next ones would not come further.
func (v *conversation) run(ctx context.Context, messages []abi.Message) error {
	request := agent.Request{ThreadID: v.id, Messages: messages}
	if len(messages) == 0 {
		request.Decisions = undecided(v.waiting)
	}
	before, all := v.replay.Position()
	result, err := v.agent.Run(ctx, request)
	if ctx.Err() != nil {
		return nil //nolint:nilerr // It is interrupted, and no failure.
	}
	v.waiting = result.Tickets
	fresh := len(messages)+len(v.waiting) > 0 && len(request.Decisions) == 0
	if after, _ := v.replay.Position(); after == before && (err != nil || !fresh) {
		v.ended = fmt.Sprintf("runs end before the model is asked: %s", result.Termination.Reason())
		v.progress.Say("%s was played to message %d of %d: %s", v.id, after, all, v.ended)
	}
	return err
}

// undecided are the decisions about calls that wait when the recording continues: there
// is no person to ask.
func undecided(tickets []agent.Ticket) []agent.Decision {
	var out []agent.Decision
	for _, k := range tickets {
		out = append(out, agent.Decision{
			Target: k.ID, Action: agent.ActionCancel, Result: "[not executed: no one decides in a replay]", Reason: "no one decides in a replay",
		})
	}
	return out
}

// event forwards an event of a run, and puts into the inbox what the user said
// while tools were at work.
func (v *conversation) event(ctx context.Context, e agent.Event) {
	v.collector.event(e)
	switch e.Type {
	case agent.EventStepStart:
		v.calls = 0
	case agent.EventToolCallDone:
		v.calls++
	case agent.EventStepEnd:
		v.position(ctx)
		v.steer(ctx)
	default: // the others are only passed on
	}
	v.progress.event(e)
}

// steer delivers what the user said while tools were at work. After a step
// without calls the run ends, and the user's next message begins another.
func (v *conversation) steer(ctx context.Context) {
	if v.calls == 0 {
		return
	}
	said := v.replay.Steering()
	if len(said) == 0 {
		return
	}
	// The inbox of a run that is at its step's end has room.
	if err := v.agent.Deliver(ctx, v.id, abi.Notice{Kind: abi.NoticeMessages, Messages: said}); err != nil {
		v.progress.Say("a recorded message was not delivered: %v", err)
	}
}

// unbilled is a compactor that does not learn from bills: those of a recording
// are for the context that was sent then, not for the one that is sent now.
type unbilled struct{ *compaction.Compactor }

// It makes room at once as well, and leaves bills alone.
var (
	_ agent.Shrinker = unbilled{}
	_ agent.Billing  = unbilled{}
)

// Calibrate does nothing.
func (unbilled) Calibrate(string, int64, []abi.Message) {}

// Billed does nothing.
func (unbilled) Billed(string, string, abi.Usage) {}

func (v *conversation) compaction(e compaction.Event) {
	v.collector.compaction(e)
	v.progress.compaction(e)
}

// position tells the progress how far the replay is.
func (v *conversation) position(ctx context.Context) {
	done, all := v.replay.Position()
	v.keeper.keep(ctx)
	r := v.result()
	v.progress.position(v.id, done, all, r.Tokens, r.ViewTokens)
}

// result is the conversation as it stands.
func (v *conversation) result() ThreadReport {
	log := v.agent.Thread(v.id).Messages()
	r := ThreadReport{ID: v.id, Ended: v.ended, Messages: len(log), ViewMessages: len(log)}
	if v.compactor == nil {
		r.Tokens = compaction.Estimate(log)
		r.ViewTokens = r.Tokens
	} else {
		view := v.compactor.View(v.id, log)
		r.Tokens, r.ViewTokens = v.compactor.Tokens(v.id, log), v.compactor.Tokens(v.id, view)
		r.ViewMessages, r.Compactions = len(view), v.compactor.Total(v.id)
	}
	done, all := v.replay.Position()
	r.Complete = done == all
	return r
}
