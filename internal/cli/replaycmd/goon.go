package replaycmd

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/agent"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// goOn takes the thread up as the store has it: the agent gets the log, and the replay stands behind
// what the log has of the recording.
func (v *conversation) goOn(ctx context.Context, c transcript.Conversation) error {
	if v.keeper == nil || len(v.keeper.kept) == 0 {
		return nil
	}
	log := slices.Clone(v.keeper.kept)
	done, err := played(c.Entries, log)
	if err != nil {
		return fmt.Errorf("store: thread %.80q is there already, and is not the beginning of this recording: %w; name another file", v.id, err)
	}
	if err := v.agent.Append(ctx, v.id, log...); err != nil {
		return fmt.Errorf("store: %w", err)
	}
	if err := v.replay.Seek(done); err != nil {
		return err
	}
	v.progress.Say("%s continues after message %d of %d", v.id, done, len(c.Entries))
	return nil
}

// played is how many entries of a recording are behind a log: all up to the last one that it has, with
// the results of that. Results have other ids there, what plugins added is not recorded, and what
// was empty is not in the log.
func played(entries []transcript.Entry, log []abi.Message) (done int, err error) {
	have := make(map[string]*abi.Message, len(log))
	for i := range log {
		have[log[i].ID] = &log[i]
	}
	for i := range entries {
		m := &entries[i].Message
		there := have[m.ID]
		switch {
		case m.Role == abi.RoleTool && done == i:
			done++
		case m.Role == abi.RoleTool || there == nil:
		case !same(m, there):
			return 0, fmt.Errorf("its message %.80q is another one", m.ID)
		default:
			done = i + 1
		}
	}
	if done == 0 {
		return 0, errors.New("it has none of its messages")
	}
	return done, nil
}

// same reports whether a message of the log is the recorded one.
func same(recorded, kept *abi.Message) bool {
	if original, ok := agent.Original(kept); ok { // a plugin replaced it
		kept = &original
	}
	return recorded.Role == kept.Role && recorded.Text() == kept.Text() &&
		slices.EqualFunc(recorded.ToolCalls, kept.ToolCalls, func(a, b abi.ToolCall) bool { return a.ID == b.ID && a.Name == b.Name })
}
