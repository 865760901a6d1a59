package agent

import (
	"context"
	"time"
)

// await waits in the process for what the run waits for. It reports whether the run
// continues: also when ctx is done, so that the run ends as cancelled.
func (r *run) await(ctx context.Context) bool {
	limit := time.NewTimer(r.cfg.WaitLimit)
	defer limit.Stop()
	for {
		if r.ready() {
			return true
		}
		select {
		case <-ctx.Done():
			return true
		case <-limit.C:
			return false
		case <-r.thread.wake:
		case <-r.thread.box.Ready():
		}
		if r.arrive(ctx) { // makes a decision durable
			return true
		}
	}
}

// ready reports whether the run can continue.
func (r *run) ready() bool {
	if r.record.Waiting.Reason == WaitTasks {
		return !r.pending()
	}
	return len(r.thread.dueTickets(r.cfg.ToolMode)) > 0
}

// pending reports whether tasks run that are to be waited for. A run does not wait
// when that is unknown.
func (r *run) pending() (yes bool) {
	if err := recovered(func() error { yes = r.cfg.Pending(r.thread.id); return nil }); err != nil {
		r.cfg.Logger.Error("it is unknown whether tasks are pending", "run_id", r.id.RunID, "error", err)
	}
	return yes
}

// arrive writes what came meanwhile to the log, and reports whether the model is to
// read it at once. While a call waits for a decision it is only logged.
func (r *run) arrive(ctx context.Context) bool {
	var fresh bool
	err := recovered(func() error { fresh = r.collect(ctx); return nil })
	if r.record.Waiting.Reason != WaitTasks {
		r.read() // when the calls are decided
	}
	if err == nil {
		err = r.checkpoint(context.WithoutCancel(ctx), nil)
	}
	if err != nil {
		r.cfg.Logger.ErrorContext(ctx, "notifications for a waiting run are not durable yet", "run_id", r.id.RunID, "error", err)
	}
	r.woke = r.woke || fresh
	return fresh && r.record.Waiting.Reason == WaitTasks
}
