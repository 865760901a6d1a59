package replaycmd

import (
	"context"
	"log/slog"
	"time"

	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/program"
)

// recordedModel is whose context is compacted: a recording names no model.
const recordedModel = "recording"

// newCompactor makes the compactor of a recording by the config.
func newCompactor(
	parts *program.Parts, tasks *taskDesk, k *keeper, observe func(compaction.Event), recorded func() time.Time, logger *slog.Logger,
) (*compaction.Compactor, error) {
	out, err := program.CompactionConfig(parts)
	if err != nil {
		return nil, err
	}
	if k != nil {
		out.Store = k
	}
	out.Spawn, out.LiveTasks, out.Observe = tasks.Housekeep, tasks.LiveTasks, observe
	out.Logger, out.Model = logger, recordedModel
	out.Admitter = &recordedClock{policy: out.Admitter, now: recorded}
	if parts.Shared.Masks {
		out.Keep = func(id, label, text string) (string, error) {
			return tasks.blobs.Put(context.Background(), id, label, text) //nolint:forbidigo // the policy has no context
		}
	}
	return compaction.New(out)
}
