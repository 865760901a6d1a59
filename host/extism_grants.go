package host

import (
	"context"
	"fmt"
	"math"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero/api"
)

// extismGrants is what an instance needs while its guest uses capabilities.
type extismGrants struct {
	state callState
	// ctx is that of the call, without what go-sdk adds to it: with that, code of the
	// embedder could get hold of the plugin. It is nil while an instance is made.
	ctx context.Context //nolint:containedctx // of one call, set and removed with it
	// entered tells that ctx has been marked for the embedder's code.
	entered bool
	// plugin and kernel are those of the host function that runs.
	plugin *extism.CurrentPlugin
	kernel context.Context //nolint:containedctx // of one host function
}

// extismFunction makes a host function of go-sdk.
func extismFunction(module string, f hostFunc) extism.HostFunction {
	out := extism.NewHostFunctionWithStack(f.name, func(ctx context.Context, p *extism.CurrentPlugin, stack []uint64) {
		i := caller(ctx)
		i.grants.plugin, i.grants.kernel = p, ctx
		i.begun(f.name)
		f.run(i, stack)
	}, apiTypes(f.params), apiTypes(f.results))
	out.SetNamespace(module)
	return out
}

// enter implements guest.
func (i *extismInstance) enter(name string) (context.Context, *callState) {
	g := &i.grants
	if g.ctx == nil {
		i.fail(&fault{kind: TrapFault, detail: fmt.Sprintf("%s can only be used within a call", name)})
	}
	i.leave()
	i.begun(name)
	if !g.entered {
		g.ctx, g.entered, g.state.caps = context.WithValue(g.ctx, insideKey{i.prog.caps.use}, true), true, i.prog.caps
	}
	return g.ctx, &g.state
}

// leave implements guest.
func (i *extismInstance) leave() {
	if i.grants.ctx.Err() != nil {
		f := i.stopped(i.grants.ctx, "")
		f.late = i.overran()
		i.fail(f)
	}
	i.called = ""
}

// open implements fileUser.
func (i *extismInstance) open() *fileUse {
	i.files.touched = true
	return &i.files
}

// allowed implements guest.
func (i *extismInstance) allowed() *Grants { return &i.prog.grants }

// forgive implements guest.
func (i *extismInstance) forgive() { i.fault = nil }

// spend implements guest. This engine counts no fuel, and looks at the context, so that
// what the host does piece by piece for a guest ends with its call.
func (i *extismInstance) spend(int) {
	if i.grants.ctx != nil && i.grants.ctx.Err() != nil {
		i.leave()
	}
}

// block implements blocks.
func (i *extismInstance) block(name string, offset uint64) []byte {
	missing := &fault{kind: TrapFault, detail: fmt.Sprintf("%s: there is no block at %d", name, offset)}
	if offset == 0 || offset > math.MaxUint32 {
		i.fail(missing)
	}
	n, err := i.grants.plugin.LengthWithContext(i.grants.kernel, offset)
	if err != nil {
		i.leaveOr(missing)
	}
	k := i.memories.kernel()
	if n == 0 || n > uint64(len(k)) || offset > uint64(len(k))-n {
		i.fail(missing)
	}
	return k[offset : offset+n]
}

// store implements blocks.
func (i *extismInstance) store(name string, data []byte) uint64 {
	if len(data) == 0 {
		return emptyBlock
	}
	full := &fault{kind: TrapMemory, detail: fmt.Sprintf("%s: the kernel has no room for %d bytes", name, len(data))}
	offset, err := i.grants.plugin.AllocWithContext(i.grants.kernel, uint64(len(data)))
	if err != nil {
		i.leaveOr(full)
	}
	// An offset of 0 says that there is no room; go-sdk would write there.
	if offset == 0 || offset > math.MaxUint32 || !i.kernelMemory().Write(uint32(offset), data) {
		i.fail(full)
	}
	return offset
}

func (i *extismInstance) kernelMemory() api.Memory { return i.plugin.Memory() }

// leaveOr ends the guest because of its context, or else with f.
func (i *extismInstance) leaveOr(f *fault) {
	if i.grants.ctx != nil {
		i.leave()
	}
	i.fail(f)
}
