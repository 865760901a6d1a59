package host

import (
	"context"
	"errors"
	"fmt"
	"strings"

	extism "github.com/extism/go-sdk"
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
	i.log.initialising = true
	defer i.end()
	defer func() {
		i.log.initialising = false
		r := recover()
		if _, ok := r.(initDone); ok {
			err = i.swallowed(ctx)
		} else if r != nil {
			panic(r)
		}
	}()
	_, _, err = i.plugin.CallWithContext(callCtx, export, nil)
	if err == nil {
		return fmt.Errorf("%w: another part of this process changed the log level of go-sdk", ErrEngine)
	}
	return i.initFault(ctx, err)
}

// swallowed reports a fault of _initialize that go-sdk only logs.
func (i *extismInstance) swallowed(ctx context.Context) error {
	if i.log.initError == "" {
		return nil
	}
	return i.initFault(ctx, errors.New(i.log.initError))
}

// initFault words what went wrong while an instance was made.
func (i *extismInstance) initFault(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		f := i.stopped(ctx, " in the start function or the initialisation of the guest's runtime")
		f.kind = TrapInit
		return f
	}
	detail := trapDetail(err, nil)
	if i.closed && i.exitCode != 0 {
		detail = fmt.Sprintf("exit code %d", i.exitCode)
	}
	return &fault{kind: TrapInit, detail: detail + i.stderrDetail()}
}

// trapDetail shortens an error of wazero to its cause and the innermost frames. own makes a
// frame one of the guest's binary, or leaves it out; nil is for a binary that runs as it is.
func trapDetail(err error, own func(frame string) (string, bool)) string {
	text := err.Error()
	if i := strings.Index(text, "wasm error: "); i >= 0 {
		text = text[i+len("wasm error: "):]
	}
	cause, stack, found := strings.Cut(text, "\nwasm stack trace:\n")
	cause = strings.TrimSuffix(firstLine(cause), " (recovered by wazero)")
	if !found {
		return clean(cause, maxDetail)
	}
	var frames []string
	for line := range strings.Lines(stack) {
		line = strings.TrimSpace(line)
		if line == "" || len(frames) == 4 {
			break
		}
		if own != nil {
			var shown bool
			if line, shown = own(line); !shown {
				continue
			}
		}
		frames = append(frames, clean(line, maxName))
	}
	return clean(cause, maxDetail/2) + " at " + strings.Join(frames, " < ")
}
