package agent

import (
	"context"
	"time"

	"github.com/mortise-dev/mortise/abi"
)

// await waits in the process for what the run waits for. It says whether the run
// is to go on: also when ctx is done, so that the run ends as cancelled.
func (r *run) await(ctx context.Context) bool {
	limit := time.NewTimer(r.cfg.WaitLimit)
	defer limit.Stop()
	for {
		if r.ready() {
			return true
		}
		arrival, stop := r.arrival(ctx)
		select {
		case <-ctx.Done():
			stop()
			return true
		case <-limit.C:
			stop()
			return false
		case <-r.thread.wake:
			stop()
			if r.arrive(ctx) { // makes the decision durable
				return true
			}
		case n := <-arrival:
			stop()
			r.thread.PutBack([]abi.Notice{n})
			if r.arrive(ctx) {
				return true
			}
		}
	}
}

// ready says whether the run can go on as things are.
func (r *run) ready() bool {
	if r.record.Waiting.Reason == WaitTasks {
		return !r.pending()
	}
	return len(r.thread.dueTickets(r.cfg.ToolMode == ParallelBatch)) > 0
}

// pending says whether tasks run that are to be waited for. Who cannot say does not
// keep a run waiting.
func (r *run) pending() (yes bool) {
	if err := recovered(func() error { yes = r.cfg.Pending(r.thread.id); return nil }); err != nil {
		r.cfg.Logger.Error("cannot tell whether tasks are pending", "run_id", r.id.RunID, "error", err)
	}
	return yes
}

// arrive takes what came meanwhile to the log, and says whether the model is to
// read it at once. Beside a call that waits for a decision it is only kept.
func (r *run) arrive(ctx context.Context) bool {
	var news bool
	err := recovered(func() error {
		news = r.settle()
		news = r.take(ctx) || news
		return nil
	})
	if r.record.Waiting.Reason != WaitTasks {
		r.read() // when the calls are decided
	}
	if err == nil {
		err = r.checkpoint(context.WithoutCancel(ctx), nil)
	}
	if err != nil {
		r.cfg.Logger.ErrorContext(ctx, "news for a waiting run is not durable yet", "run_id", r.id.RunID, "error", err)
	}
	r.woke = r.woke || news
	return news && r.record.Waiting.Reason == WaitTasks
}

// arrival waits for one notice. After stop none is taken from the inbox any more:
// one that was taken and not received is put back.
func (r *run) arrival(ctx context.Context) (arrival <-chan abi.Notice, stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	out, over := make(chan abi.Notice), make(chan struct{})
	go func() {
		defer close(over)
		n, err := r.box.Recv(ctx)
		if err != nil {
			return
		}
		select {
		case out <- n:
		case <-ctx.Done():
			r.thread.PutBack([]abi.Notice{n})
		}
	}()
	return out, func() {
		cancel()
		<-over
	}
}
