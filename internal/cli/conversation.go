package cli

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
	"github.com/mortise-dev/mortise/llm/replay"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// conversation is one replay under way.
type conversation struct {
	id        string
	replay    *replay.Replay
	agent     *agent.Agent
	tasks     *background.Manager
	compactor *compaction.Compactor
	progress  *progress
	collector *collector
}

// replayConversation plays one conversation to its end. The error joins those of
// its runs; a run that failed does not keep the next one from starting.
func replayConversation(
	ctx context.Context, parts *parts, c transcript.Conversation, logger *slog.Logger, p *progress, col *collector,
) error {
	v := &conversation{id: c.ID, progress: p, collector: col}
	if err := v.wire(parts, c, logger); err != nil {
		return fmt.Errorf("conversation %s: %w", c.ID, err)
	}
	failures := v.play(ctx)
	if ctx.Err() == nil {
		// What is still in flight is waited for, and swapped in.
		failures = append(failures, v.tasks.Wait(ctx, v.id))
		v.agent.Settle(v.id)
	}
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	failures = append(failures, v.tasks.Close(closing))
	col.thread(v.result())
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("conversation %s: %w", c.ID, err)
	}
	return nil
}

// wire joins replay, tasks, compactor and agent.
func (v *conversation) wire(parts *parts, c transcript.Conversation, logger *slog.Logger) error {
	var err error
	v.replay, err = replay.New(c, replay.Config{Pace: time.Duration(parts.cfg.Replay.Pace)})
	if err != nil {
		return err
	}
	v.tasks, err = background.New(background.Config{
		Logger: logger,
		Deliver: func(ctx context.Context, thread string, n abi.Notice) error {
			return v.agent.Deliver(ctx, thread, n)
		},
	})
	if err != nil {
		return err
	}
	prompt := parts.cfg.Agent.SystemPrompt
	if recorded := v.replay.SystemPrompt(); recorded != "" {
		prompt = recorded
	}
	config := agent.Config{
		Model: v.replay, Tools: v.replay, Phases: parts.phases, SystemPrompt: prompt,
		MaxRounds: -1, Listen: v.event, Logger: logger,
	}
	if parts.cfg.Agent.MaxRounds != 0 {
		config.MaxRounds = parts.cfg.Agent.MaxRounds
	}
	if parts.summarizer != nil {
		if v.compactor, err = newCompactor(parts, v.tasks, v.compaction, logger); err != nil {
			return err
		}
		config.Compactor = v.compactor
	}
	v.agent, err = agent.New(config)
	return err
}

// play runs turn after turn until the recording or the context ends.
func (v *conversation) play(ctx context.Context) []error {
	var failures []error
	for turn, ok := v.replay.Next(); ok && ctx.Err() == nil; turn, ok = v.replay.Next() {
		if !turn.Answered {
			// Nobody answered in the recording: the messages come one by one.
			for _, m := range turn.Messages {
				if err := v.agent.Append(ctx, v.id, m); err != nil {
					failures = append(failures, err)
				}
				v.position()
			}
			continue
		}
		before, _ := v.replay.Position()
		_, err := v.agent.Run(ctx, agent.Request{ThreadID: v.id, Messages: turn.Messages})
		if err != nil && ctx.Err() == nil {
			failures = append(failures, err)
			if after, _ := v.replay.Position(); after == before {
				// The run failed before it asked the model; so would the next.
				return failures
			}
		}
	}
	return failures
}

// event passes news of a run on, and puts into the inbox what the user said
// while tools were at work.
func (v *conversation) event(ctx context.Context, e agent.Event) {
	v.collector.event(e)
	if e.Type == agent.EventStepEnd {
		v.position()
		if said := v.replay.Steering(); len(said) > 0 {
			// The inbox of a run that is at its step's end has room.
			notice := abi.Notice{Kind: abi.NoticeMessages, Messages: said}
			if err := v.agent.Deliver(ctx, v.id, notice); err != nil {
				v.progress.say("a recorded message was not delivered: %v", err)
			}
		}
	}
	v.progress.event(e)
}

func (v *conversation) compaction(e compaction.Event) {
	v.collector.compaction(e)
	v.progress.compaction(e)
}

// position tells the progress how far the replay is.
func (v *conversation) position() {
	done, all := v.replay.Position()
	r := v.result()
	v.progress.position(v.id, done, all, r.Tokens, r.ViewTokens)
}

// result is the conversation as it stands.
func (v *conversation) result() ThreadReport {
	log := v.agent.Thread(v.id).Messages()
	view := log
	r := ThreadReport{ID: v.id, Messages: len(log), Tokens: compaction.Estimate(log)}
	if v.compactor != nil {
		view = v.compactor.View(v.id, log)
		r.Compactions = len(v.compactor.Markers(v.id))
	}
	r.ViewMessages, r.ViewTokens = len(view), compaction.Estimate(view)
	done, all := v.replay.Position()
	r.Complete = done == all
	return r
}
