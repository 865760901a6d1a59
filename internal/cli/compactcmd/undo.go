package compactcmd

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/cli/command"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/program"
	"github.com/mortise-dev/mortise/internal/term"
	"github.com/mortise-dev/mortise/thread"
)

const undoLong = `Take the newest compaction of a thread back. The log kept every message, so what
the model saw before it is there again, byte for byte. Doing it again takes the one
before back. The next compaction of the thread starts when what the model sees has grown.

A file that mortise serve uses is refused: there DELETE /v1/threads/ID/compactions/latest does it.`

func newCompactUndo(s command.Streams) *cobra.Command {
	var id string
	cmd := &cobra.Command{
		Use:     "undo FILE|URL",
		Short:   "Take the newest compaction of a thread back",
		Long:    undoLong,
		Example: `  mortise compact undo mortise.db --thread main`,
		Args:    command.TakesOne("FILE|URL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			m, err := undo(cmd.Context(), s.Links, args[0], id)
			if err != nil {
				return exit.With(exit.Session, err)
			}
			r, err := readCompactions(cmd.Context(), s.Links, args[0], m.ThreadID)
			if err != nil {
				return exit.With(exit.Session, err)
			}
			t := &r.Threads[0]
			_, err = fmt.Fprintf(s.Out, "undone: %s of %s by %s\nthread %s: the model sees %d messages, %s tokens; %s left\n",
				m.ID, m.At.UTC().Format(time.RFC3339), m.Policy, t.ID, t.ViewMessages, term.Thousands(t.ViewTokens), left(len(t.State.Markers)))
			return err
		},
	}
	cmd.Flags().StringVar(&id, "thread", "", "the thread's id; needed when there are several")
	return cmd
}

// left words how many compactions there are.
func left(n int) string {
	if n == 1 {
		return "1 compaction is"
	}
	return fmt.Sprintf("%d compactions are", n)
}

// undoTries is how often an undo is tried while a run changes the same thread.
const undoTries = 5

// undo takes the newest marker of a thread back, where that is kept.
func undo(ctx context.Context, links program.Links, path, id string) (compaction.Marker, error) {
	k, err := links.OpenThreads(ctx, path)
	if err != nil {
		return compaction.Marker{}, err
	}
	defer k.Home.Close(ctx)
	if k.Home.Path != "" {
		held, err := program.HoldFile(k.Home.Path)
		if errors.Is(err, program.ErrLocked) {
			return compaction.Marker{}, exit.With(exit.Session, fmt.Errorf("the %s: a process uses it, which would not see the undo; ask mortise serve: DELETE /v1/threads/ID/compactions/latest, or end the process", k.What))
		}
		if err != nil {
			return compaction.Marker{}, err
		}
		defer held.Close()
	}
	threads, err := k.Pick(ctx, id)
	if err != nil {
		return compaction.Marker{}, err
	}
	if len(threads) > 1 {
		return compaction.Marker{}, exit.NotFound(fmt.Errorf("the %s holds %d threads; name one with --thread (mortise compact show lists them)", k.What, len(threads)))
	}
	for range undoTries {
		m, err := undoOnce(ctx, k.Threads, threads[0])
		if !errors.Is(err, compaction.ErrConflict) {
			return m, err
		}
	}
	return compaction.Marker{}, errors.New("a run changes the thread all the time; try again when it has ended")
}

func undoOnce(ctx context.Context, s *thread.Threads, id string) (compaction.Marker, error) {
	state, rev, err := s.State(ctx, id)
	if err != nil {
		return compaction.Marker{}, err
	}
	m, ok := state.Undo()
	if !ok && state.Dropped > 0 {
		return compaction.Marker{}, exit.NotFound(fmt.Errorf(
			"thread %q: its newest compaction cannot be undone: retention has dropped the content of %d messages that it covers (serve.retention.messages and max_messages)",
			id, state.Dropped))
	}
	if !ok {
		return compaction.Marker{}, exit.NotFound(fmt.Errorf("thread %q has no compaction that can be undone", id))
	}
	m.ThreadID = id
	undone := compaction.Event{
		Kind: compaction.EventUndone, Thread: id, At: time.Now(), AttemptID: m.ID, Policy: m.Policy,
		FromID: m.FromID, ToID: m.ToID, PreTokens: m.PostTokens, PostTokens: m.PreTokens,
	}
	if _, err := s.Commit(ctx, id, thread.Commit{State: &state, Base: rev, Events: []compaction.Event{undone}}); err != nil {
		return compaction.Marker{}, err
	}
	return m, nil
}
