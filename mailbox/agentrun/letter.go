package agentrun

import (
	"context"
	"fmt"
	"slices"

	"github.com/mortise-dev/mortise/mailbox"
)

// askAgain gives other ids to what a request brings, if this very dispatch has brought it into the log before, for a run that has failed, and
// others had their turn since: it was a dead letter and is replayed, or what came before it in the queue overtook it between two
// attempts. So it is asked again, at the end of the log.
func (k *keeper) askAgain(ctx context.Context, r *mailbox.Request) error {
	if k.thread.Run.DispatchID == k.job.Dispatch.ID {
		return nil // the log ends with it
	}
	list := slices.Clone(r.Messages)
	for i := range list {
		brought, err := k.brought(ctx, list[i].ID)
		if err != nil {
			return err
		}
		if brought {
			list[i].ID = fmt.Sprint(k.job.Run.ID, "/", k.job.Fence, "/", i)
		}
	}
	r.Messages = list
	return nil
}

// brought reports whether a message of the log is of a run whose latest dispatch is the one that is executed.
func (k *keeper) brought(ctx context.Context, message string) (bool, error) {
	seq := k.seqs[message]
	if seq == 0 {
		return false, nil
	}
	list, err := k.job.Log(ctx, seq, 1)
	if err != nil || len(list) == 0 {
		return false, err
	}
	run, _, err := k.job.LoadRun(ctx, list[0].Run)
	return run.Dispatch == k.job.Dispatch.ID, err
}
