package mailbox

import (
	"context"
	"fmt"
	"runtime/debug"

	"github.com/mortise-dev/mortise/internal/queue"
)

// steer hands a command to the run. A panic of the runtime refuses it: it may come from another process, on a goroutine of the store.
func (x *execution) steer(ctx context.Context, s Steerer, c Command) (accepted bool) {
	ctx, end := x.box.queue.Begin(ctx, Operation{Name: queue.OpSteer, Thread: x.hold.Thread, Dispatch: x.hold.Dispatch})
	var err error
	defer func() {
		if p := recover(); p != nil {
			accepted, err = false, fmt.Errorf("mailbox: dispatch %.80q: steering panicked: %v", x.hold.Dispatch, p)
			x.box.cfg.Logger.ErrorContext(ctx, "mailbox_steer_panicked", "thread", x.hold.Thread, "dispatch", x.hold.Dispatch, "kind", c.Kind, "panic", p, "stack", string(debug.Stack()))
		}
		end(!accepted, err)
	}()
	return s.Steer(ctx, x.claimed.Dispatch.RunID, c)
}
