package native

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
)

// nativeGrants is what an instance needs while its guest uses capabilities. It is
// made when the guest does so in a call, and costs other calls nothing.
type nativeGrants struct {
	state engine.CallState
	files engine.FileUse
	// ctx ends with the call; nil until it is needed.
	ctx  context.Context //nolint:containedctx // of one call, set and removed with it
	free context.CancelFunc
	// stop ends ctx from another goroutine.
	stop atomic.Pointer[context.CancelCauseFunc]
	// over is when ctx ended. unwatch ends the wait for that.
	over    *atomic.Pointer[time.Time]
	unwatch func() bool
}

// Enter implements guest.
func (i *nativeInstance) Enter(name string) (context.Context, *engine.CallState) {
	if !i.ready {
		i.Fail(&engine.Fault{Kind: engine.TrapFault, Detail: fmt.Sprintf("%s can only be used within a call", name)})
	}
	i.wait(name)
	if i.mems.guest.memory != nil {
		i.mems.guest.memory.distrust()
	}
	return i.grants.ctx, &i.grants.state
}

// wait comes before a host call that may wait, which is one within a call.
func (i *nativeInstance) wait(name string) {
	i.Leave()
	g := &i.grants
	if g.ctx == nil {
		g.state.Env = i.prog.Env
		ctx := i.prog.Env.Use.Mark(i.context.Context)
		ctx, stop := context.WithCancelCause(ctx)
		g.ctx, g.free = context.WithDeadline(ctx, i.deadline)
		g.watch()
		g.stop.Store(&stop)
		i.Leave() // interrupt may have come before it could see stop
	}
	i.called = name
}

// Open implements fileUser.
func (i *nativeInstance) Open() *engine.FileUse {
	i.files = true
	return &i.grants.files
}

// Caller implements guest.
func (i *nativeInstance) Caller() context.Context {
	if !i.ready {
		return nil
	}
	return i.context.Context
}

// Forgive implements guest.
func (i *nativeInstance) Forgive() { i.fault = nil }

// Leave implements guest.
func (i *nativeInstance) Leave() {
	if f := i.check(); f != nil {
		i.Fail(f)
	}
}

// watch records when ctx ends.
func (g *nativeGrants) watch() {
	over := new(atomic.Pointer[time.Time])
	g.over, g.unwatch = over, context.AfterFunc(g.ctx, func() {
		now := time.Now()
		over.Store(&now)
	})
}

// cancelled is when the call was cancelled, counted from start: at seen if that is not known,
// and now if it was just noticed.
func (g *nativeGrants) cancelled(start time.Time, seen, now time.Duration) time.Duration {
	if g.ctx == nil {
		return seen
	}
	if at := g.over.Load(); at != nil {
		return at.Sub(start)
	}
	return now
}

// end lets go of a call.
func (g *nativeGrants) end() {
	g.files.Written = 0
	if g.ctx == nil {
		return
	}
	g.unwatch()
	g.free()
	(*g.stop.Swap(nil))(nil)
	g.ctx, g.free, g.state, g.over, g.unwatch = nil, nil, engine.CallState{}, nil, nil
}

// interrupt ends what the call waits for, from another goroutine.
func (g *nativeGrants) interrupt() {
	if stop := g.stop.Load(); stop != nil {
		(*stop)(engine.ErrClosed)
	}
}
