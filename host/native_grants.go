package host

import (
	"context"
	"fmt"
	"sync/atomic"
)

// nativeGrants is what an instance needs while its guest uses capabilities. It is
// made when the guest does so in a call, and costs other calls nothing.
type nativeGrants struct {
	state callState
	files fileUse
	// ctx ends with the call; nil until it is needed.
	ctx  context.Context //nolint:containedctx // of one call, set and removed with it
	free context.CancelFunc
	// stop ends ctx from another goroutine.
	stop atomic.Pointer[context.CancelCauseFunc]
}

// enter implements guest.
func (i *nativeInstance) enter(name string) (context.Context, *callState) {
	if !i.ready {
		i.fail(&fault{kind: TrapFault, detail: fmt.Sprintf("%s can only be used within a call", name)})
	}
	i.leave()
	g := &i.grants
	if g.ctx == nil {
		if i.mems.guest.memory != nil {
			i.mems.guest.memory.distrust()
		}
		g.state.caps = i.prog.caps
		ctx := context.WithValue(i.context.Context, insideKey{i.prog.caps.use}, true)
		ctx, stop := context.WithCancelCause(ctx)
		g.ctx, g.free = context.WithDeadline(ctx, i.deadline)
		g.stop.Store(&stop)
		i.leave() // interrupt may have come before it could see stop
	}
	return g.ctx, &g.state
}

// open implements fileUser.
func (i *nativeInstance) open() *fileUse {
	i.files = true
	return &i.grants.files
}

// allowed implements guest.
func (i *nativeInstance) allowed() *Grants { return &i.prog.grants }

// forgive implements guest.
func (i *nativeInstance) forgive() { i.fault = nil }

// leave implements guest.
func (i *nativeInstance) leave() {
	late := i.late()
	switch err := i.context.Err(); {
	case i.stop.Load():
		i.fail(i.closed())
	case err != nil:
		i.fail(i.stopped(err))
	case late:
		i.fail(i.stopped(context.DeadlineExceeded))
	}
}

// end lets go of a call.
func (g *nativeGrants) end() {
	g.files.written = 0
	if g.ctx == nil {
		return
	}
	g.free()
	(*g.stop.Swap(nil))(nil)
	g.ctx, g.free, g.state = nil, nil, callState{}
}

// interrupt ends what the call waits for, from another goroutine.
func (g *nativeGrants) interrupt() {
	if stop := g.stop.Load(); stop != nil {
		(*stop)(ErrClosed)
	}
}
