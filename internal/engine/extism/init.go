package extism

import (
	"context"
	"errors"
	"fmt"

	extism "github.com/extism/go-sdk"

	"github.com/mortise-dev/mortise/internal/engine"
)

// initDone ends the call that was only made to initialise an instance.
type initDone struct{}

// initialise runs the initialiser of the guest's runtime under ctx. go-sdk does
// that in the first call of an instance, right before it logs which function it
// calls. So a call is begun, and left by a panic at that message: the
// initialiser has run and the function has not.
func (i *extismInstance) initialise(ctx context.Context) (err error) {
	export := i.prog.probe()
	if !i.prog.initialised() || export == "" {
		return nil
	}
	// The level is one for the process; above debug the message would not come.
	extism.SetLogLevel(extism.LogLevelDebug)
	callCtx := i.begin(ctx, export, nil)
	i.Log.Initialising = true
	defer i.end()
	defer func() {
		i.Log.Initialising = false
		r := recover()
		if _, ok := r.(initDone); ok {
			err = i.swallowed(ctx)
		} else if r != nil {
			panic(r)
		}
	}()
	_, _, err = i.plugin.CallWithContext(callCtx, export, nil)
	if err == nil {
		return fmt.Errorf("%w: another part of this process changed the log level of go-sdk", engine.ErrEngine)
	}
	return i.initFault(ctx, err)
}

// swallowed reports a fault of _initialize that go-sdk only logs.
func (i *extismInstance) swallowed(ctx context.Context) error {
	if i.Log.InitError == "" {
		return nil
	}
	return i.initFault(ctx, errors.New(i.Log.InitError))
}

// initFault words what went wrong while an instance was made.
func (i *extismInstance) initFault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		f := i.stopped(ctx, " in the start function or the initialisation of the guest's runtime")
		f.Kind = engine.TrapInit
		return f
	}
	detail := engine.TrapDetail(err, nil)
	if i.closed && i.exitCode != 0 {
		detail = fmt.Sprintf("exit code %d", i.exitCode)
	}
	return &engine.Fault{Kind: engine.TrapInit, Detail: detail + i.Tail()}
}
