package agent

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// persist makes durable, before a tool runs, what the run must not lose if its process ends in
// it: the model's answer, its usage, and what plugins changed since. It writes nothing if the
// last checkpoint of the step holds all that. The first one is written before the gates run,
// since a gate may take its time, and the answer is paid for. What the answer is for is
// acknowledged with the first result, and not here: it wakes the thread if the process ends in the tool.
func (b *batch) persist(ctx context.Context) error {
	if len(b.assistant.ToolCalls) == 0 || b.saved && b.revision == b.run.state.Revision() {
		return nil
	}
	return b.save(ctx, b.run.write)
}

// save writes a checkpoint of the step under way, if checkpoints are kept at all.
func (b *batch) save(ctx context.Context, write func(ctx context.Context, open []abi.Message) error) error {
	r := b.run
	if r.cfg.Checkpoints == nil {
		return nil
	}
	r.record.Steps = r.step // The inference of the step is not repeated.
	revision := r.state.Revision()
	if err := write(context.WithoutCancel(ctx), append([]abi.Message{b.logged()}, b.results...)); err != nil {
		return err
	}
	b.saved, b.revision = true, revision
	return nil
}

// key returns the idempotency key of a call. It is made of what the checkpoint before the call
// holds, and of the run, because a model may use the ids of messages and calls again.
func (b *batch) key(call abi.ToolCall) string {
	return joinKey(b.run.id.RunID, strconv.Itoa(b.run.step), b.assistant.ID, call.ID)
}

// joinKey makes a key of ids. They are escaped: a model, which may write any id, must not write
// the key of another call.
func joinKey(ids ...string) string {
	for i := range ids {
		ids[i] = url.PathEscape(ids[i])
	}
	return strings.Join(ids, "/")
}
