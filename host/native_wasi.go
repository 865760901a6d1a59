package host

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"
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
			return nil, fmt.Errorf("%w: the WASI function %s is not as expected", ErrEngine, def.Name())
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
	b := p.runtime.NewHostModuleBuilder(moduleWASI)
	for _, def := range all {
		f := &wasiImport{
			name: def.Name(), lengths: wasiLengths(def.Name()), moves: movesDescriptors(def.Name()),
			disk: len(p.caps.folders) > 0 && reachesFiles(def.Name()), run: def.GoFunction().(api.GoModuleFunction), //nolint:errcheck,forcetypeassert // checked
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
	lengths []wasiLength
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
		n := min(uint64(api.DecodeU32(stack[l.param])), uint64(i.memoryBound()/l.size)) // not negative
		switch {
		case l.most == 0 || n <= uint64(l.most): // not negative
			i.spend(l.cost * (int(n) / l.each))
		case l.errno != 0:
			stack[0] = l.errno
			return
		default:
			i.fail(l.tooMany(f.name, n, l.most))
		}
	}
	if !f.disk || !i.ready {
		i.called = f.name
		f.run.Call(ctx, m, stack)
		return
	}
	i.wait(f.name)
	f.run.Call(ctx, m, stack)
	i.leave()
}
