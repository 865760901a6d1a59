package extism

import (
	"context"
	"fmt"
	"math"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero/api"

	"github.com/mortise-dev/mortise/internal/engine"
)

// extismGrants is what an instance needs while its guest uses capabilities.
type extismGrants struct {
	state engine.CallState
	// ctx is that of the call, without what go-sdk adds to it: with that, code of the
	// embedder could get hold of the plugin. It is nil while an instance is made.
	ctx context.Context //nolint:containedctx // of one call, set and removed with it
	// entered reports that ctx has been marked for the embedder's code.
	entered bool
	// plugin and kernel are those of the host function that runs.
	plugin *extism.CurrentPlugin
	kernel context.Context //nolint:containedctx // of one host function
}

// extismFunction makes a host function of go-sdk.
func extismFunction(module string, f engine.HostFunc) extism.HostFunction {
	out := extism.NewHostFunctionWithStack(f.Name, func(ctx context.Context, p *extism.CurrentPlugin, stack []uint64) {
		i := instanceOf(ctx)
		i.grants.plugin, i.grants.kernel = p, ctx
		i.begun(f.Name)
		f.Run(i, stack)
	}, engine.APITypes(f.Params), engine.APITypes(f.Results))
	out.SetNamespace(module)
	return out
}

// Enter implements guest.
func (i *extismInstance) Enter(name string) (context.Context, *engine.CallState) {
	g := &i.grants
	if g.ctx == nil {
		i.Fail(&engine.Fault{Kind: engine.TrapFault, Detail: fmt.Sprintf("%s can only be used within a call", name)})
	}
	i.Leave()
	i.begun(name)
	if !g.entered {
		g.ctx, g.entered, g.state.Env = i.prog.Env.Use.Mark(g.ctx), true, i.prog.Env
	}
	return g.ctx, &g.state
}

// Leave implements guest.
func (i *extismInstance) Leave() {
	if i.grants.ctx.Err() != nil {
		f := i.stopped(i.grants.ctx, "")
		f.Late = i.overran()
		i.Fail(f)
	}
	i.called = ""
}

// Open implements fileUser.
func (i *extismInstance) Open() *engine.FileUse {
	i.files.Touched = true
	return &i.files
}

// Caller implements guest.
func (i *extismInstance) Caller() context.Context { return i.grants.ctx }

// Forgive implements guest.
func (i *extismInstance) Forgive() { i.fault = nil }

// Spend implements guest. This engine counts no fuel, and looks at the context, so that
// what the host does piece by piece for a guest ends with its call.
func (i *extismInstance) Spend(int) {
	if i.grants.ctx != nil && i.grants.ctx.Err() != nil {
		i.Leave()
	}
}

// Block implements blocks.
func (i *extismInstance) Block(name string, offset uint64) []byte {
	missing := &engine.Fault{Kind: engine.TrapFault, Detail: fmt.Sprintf("%s: there is no block at %d", name, offset)}
	if offset == 0 || offset > math.MaxUint32 {
		i.Fail(missing)
	}
	n, err := i.grants.plugin.LengthWithContext(i.grants.kernel, offset)
	if err != nil {
		i.leaveOr(missing)
	}
	k := i.memories.kernel()
	if n == 0 || n > uint64(len(k)) || offset > uint64(len(k))-n {
		i.Fail(missing)
	}
	return k[offset : offset+n]
}

// Store implements blocks.
func (i *extismInstance) Store(name string, data []byte) uint64 {
	if len(data) == 0 {
		return engine.EmptyBlock
	}
	full := &engine.Fault{Kind: engine.TrapMemory, Detail: fmt.Sprintf("%s: the kernel has no room for %d bytes", name, len(data))}
	offset, err := i.grants.plugin.AllocWithContext(i.grants.kernel, uint64(len(data)))
	if err != nil {
		i.leaveOr(full)
	}
	// An offset of 0 means that there is no room; go-sdk would write there.
	if offset == 0 || offset > math.MaxUint32 || !i.kernelMemory().Write(uint32(offset), data) {
		i.Fail(full)
	}
	return offset
}

func (i *extismInstance) kernelMemory() api.Memory { return i.plugin.Memory() }

// leaveOr ends the guest because of its context, or else with f.
func (i *extismInstance) leaveOr(f *engine.Fault) {
	if i.grants.ctx != nil {
		i.Leave()
	}
	i.Fail(f)
}
