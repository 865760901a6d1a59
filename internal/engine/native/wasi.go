package native

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/mortise-dev/mortise/internal/engine"
)

// wasiFunctions are wazero's functions of WASI, in the order of their names. They keep no
// state of their own, so one list does for all runtimes.
func wasiFunctions() ([]api.FunctionDefinition, error) {
	ctx := context.Background() //nolint:forbidigo // nothing waits
	r := wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigInterpreter())
	defer r.Close(ctx)
	m, err := wasi_snapshot_preview1.NewBuilder(r).Compile(ctx)
	if err != nil {
		return nil, err
	}
	var out []api.FunctionDefinition
	for _, def := range m.ExportedFunctions() {
		if _, ok := def.GoFunction().(api.GoModuleFunction); !ok {
			return nil, fmt.Errorf("%w: the WASI function %s is not as expected", engine.ErrEngine, def.Name())
		}
		out = append(out, def)
	}
	slices.SortFunc(out, func(a, b api.FunctionDefinition) int { return cmp.Compare(a.Name(), b.Name()) })
	return out, nil
}

// offerWASI makes the WASI module: wazero's functions, each behind a wasiImport.
func (p *nativeProgram) offerWASI(ctx context.Context) error {
	all, err := p.wasi()
	if err != nil {
		return err
	}
	b := p.runtime.NewHostModuleBuilder(engine.ModuleWASI)
	for _, def := range all {
		f := &wasiImport{
			name: def.Name(), lengths: engine.WasiLengths(def.Name()), moves: engine.MovesDescriptors(def.Name()),
			disk: len(p.Mounts) > 0 && engine.ReachesFiles(def.Name()), run: def.GoFunction().(api.GoModuleFunction), //nolint:errcheck,forcetypeassert // checked
		}
		b.NewFunctionBuilder().WithGoModuleFunction(f, def.ParamTypes(), def.ResultTypes()).Export(def.Name())
	}
	_, err = b.Instantiate(ctx)
	return err
}

// wasiImport is a WASI function for guests. What it is asked to do is bounded and paid for
// before the engine does it.
type wasiImport struct {
	name    string
	lengths []engine.WasiLength
	// moves is set if it closes or moves a descriptor. WASI keeps that for the instance,
	// so the instance must not be used again.
	moves bool
	// disk is set if it may wait for a disk.
	disk bool
	run  api.GoModuleFunction
}

// Call implements api.GoModuleFunction.
func (f *wasiImport) Call(ctx context.Context, m api.Module, stack []uint64) {
	i := nativeCaller(ctx)
	i.touched = true
	i.files = i.files || f.moves
	for _, l := range f.lengths {
		n := min(uint64(api.DecodeU32(stack[l.Param])), uint64(i.memoryBound()/l.Size)) // not negative
		switch {
		case l.Most == 0 || n <= uint64(l.Most): // not negative
			i.Spend(l.Cost * (int(n) / l.Each))
		case l.Errno != 0:
			stack[0] = l.Errno
			return
		default:
			i.Fail(l.TooMany(f.name, n, l.Most))
		}
	}
	if !f.disk || !i.ready {
		i.called = f.name
		f.run.Call(ctx, m, stack)
		return
	}
	i.wait(f.name)
	f.run.Call(ctx, m, stack)
	i.Leave()
}
