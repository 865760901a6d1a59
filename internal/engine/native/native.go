package native

import (
	"context"
	_ "embed"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/compile"
	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

//go:embed kernel.wasm
var kernelWasm []byte

// Names inside the native engine. Guests cannot import them: Load refuses.
const (
	moduleNative = "mortise:native"
	importRefill = "refill"
)

// Engine runs metered guests on wazero, each with a kernel of its own.
type Engine struct {
	cache *compile.DiskCache
	child *compile.Process
	// Memory is the kind of memory that guests get which are compiled from now on. Open chooses the best one that works here.
	Memory MemoryKind
	// Verify compares each memory that was reset with what it should be, and panics where they differ.
	Verify bool
	// wasi is wasiFunctions, called once.
	wasi func() ([]api.FunctionDefinition, error)
}

// Maker makes the native engine.
type Maker struct{}

// Name implements Engine.
func (Maker) Name() string { return "native" }

// Open implements Engine.
func (Maker) Open(s compile.Setup) engine.Engine {
	e := &Engine{cache: s.Cache, child: s.Child, wasi: sync.OnceValues(wasiFunctions)}
	if runtime.GOOS == "linux" && !faultsAreTold() {
		s.Logger.Warn("fresh state is slow here: the kernel does not report which pages a guest has changed",
			"hint", "let the process read /proc/self/pagemap, on a kernel that counts page faults")
		e.Memory = MemoryBlind
	}
	return e
}

// Close implements engine.Engine.
func (e *Engine) Close(context.Context) error { return nil }

// Compile rewrites the module so that it counts and can be stopped, and compiles
// it together with the kernel in a runtime of its own.
func (e *Engine) Compile(ctx context.Context, src engine.Source) (_ engine.Program, err error) {
	metered, err := rewrite(src.Modules())
	if err != nil {
		return nil, err
	}
	cache, err := e.cache.Code(src.Name)
	if err != nil {
		return nil, err
	}
	main := len(metered) - 1
	p := &nativeProgram{Source: src, guest: nativeCode{meter: metered[main]}, cache: cache, memory: e.Memory, verify: e.Verify, wasi: e.wasi}
	for n, l := range src.Links {
		p.linked = append(p.linked, nativeLink{Linked: l, nativeCode: nativeCode{meter: metered[n]}})
	}
	p.runtime = wazero.NewRuntimeWithConfig(ctx, wazero.NewRuntimeConfigCompiler().WithDebugInfoEnabled(false).WithCompilationCache(cache).
		WithMemoryLimitPages(uint32(p.Limits.MemoryPages)). // between 17 and 65536
		WithCoreFeatures(features))
	defer func() {
		if err != nil {
			_ = p.Close(context.WithoutCancel(ctx))
		}
	}()
	defer engine.Recovered(&err, fmt.Sprintf("host: module %q: compilation", src.Name))
	for _, one := range metered {
		if err := e.child.Precompile(ctx, e.cache, src.Name, compile.CompileMode{Features: features}, one.Wasm); err != nil {
			return nil, err
		}
	}
	if err := p.build(compile.InTime(ctx)); err != nil {
		return nil, err
	}
	return p, nil
}

// features are those that the rewriter knows.
const features = api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst |
	experimental.CoreFeaturesExceptionHandling | experimental.CoreFeaturesThreads

// rewrite meters modules that belong together.
func rewrite(modules []*wasm.Module) (out []*meter.Result, err error) {
	out = make([]*meter.Result, len(modules))
	for n, m := range modules {
		out[n], err = meter.Rewrite(m, meter.Options{RefillModule: moduleNative, RefillName: importRefill, MaxTable: engine.MaxTableElements})
		if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// nativeProgram is a compiled module and its kernel.
type nativeProgram struct {
	engine.Source

	// guest is the main module.
	guest nativeCode

	runtime wazero.Runtime
	cache   wazero.CompilationCache
	kernel  wazero.CompiledModule
	// linked are the links, each behind those that it imports from.
	linked []nativeLink
	// kernelInput reports that the guest reads its input from the kernel.
	kernelInput bool
	memory      MemoryKind
	verify      bool
	wasi        func() ([]api.FunctionDefinition, error)
	template    templates
}

// build compiles what the program consists of.
func (p *nativeProgram) build(ctx context.Context) error {
	if err := p.offerFunctions(ctx); err != nil {
		return err
	}
	if slices.ContainsFunc(p.Modules(), func(m *wasm.Module) bool { return engine.Imports(m, engine.ModuleWASI) }) {
		if err := p.offerWASI(ctx); err != nil {
			return err
		}
	}
	p.kernelInput = slices.ContainsFunc(p.Modules(), readsKernelInput)
	kernel, err := namedKernel()
	if err != nil {
		return err
	}
	if p.kernel, err = p.runtime.CompileModule(ctx, kernel); err != nil {
		return err
	}
	for n := range p.linked {
		l := &p.linked[n]
		if l.code, err = p.runtime.CompileModule(ctx, l.meter.Wasm); err != nil {
			return fmt.Errorf("link %q: %w", engine.Clean(l.Name, engine.MaxName), err)
		}
	}
	p.guest.code, err = p.runtime.CompileModule(ctx, p.guest.meter.Wasm)
	return err
}

// nativeCode is a module as it was rewritten and compiled.
type nativeCode struct {
	meter *meter.Result
	code  wazero.CompiledModule
}

// readsKernelInput reports whether a module reads its input word by word.
func readsKernelInput(m *wasm.Module) bool {
	return slices.ContainsFunc(m.Imports, func(im wasm.Import) bool {
		return im.Module == engine.ModuleEnv && slices.Contains([]string{"input_offset", "input_load_u8", "input_load_u64"}, im.Name)
	})
}

// stateful reports that memory and globals of the main module are not all the state.
func (p *nativeProgram) stateful() bool { return p.guest.meter.Stateful || len(p.linked) > 0 }

// Metered implements engine.Program.
func (p *nativeProgram) Metered() (bool, string) { return true, "" }

func (p *nativeProgram) Close(ctx context.Context) error {
	p.template.close()
	err := p.runtime.Close(ctx)
	if cacheErr := p.cache.Close(ctx); err == nil {
		err = cacheErr
	}
	return err
}

// Instantiate makes an instance. A sticky one keeps its state between calls.
func (p *nativeProgram) Instantiate(ctx context.Context, sticky bool) (_ engine.Instance, err error) {
	defer engine.Recovered(&err, "making an instance")
	i, err := p.instance(ctx)
	if err != nil {
		return nil, err
	}
	i.sticky = sticky
	return i, nil
}

// instance makes one: anew the first time, and from the template that
// the first one left behind after that, if memory and globals are all its state.
func (p *nativeProgram) instance(ctx context.Context) (*nativeInstance, error) {
	i := newNativeInstance(p)
	made := false
	defer func() {
		if !made {
			_ = i.Close(context.WithoutCancel(ctx))
		}
	}()
	if err := i.start(ctx); err != nil {
		return nil, err
	}
	t := p.template.get()
	if t == nil {
		if err := i.initialise(ctx, i.guest, p.guest.meter, p.Parsed); err != nil {
			return nil, err
		}
		if p.stateful() || i.files {
			// A template holds memory and globals of one module. What such a guest did to its
			// tables, files or links would be missing in later instances, so each starts anew.
			made = true
			return i, nil
		}
		if p.template.warm() && (i.warm(ctx) != nil || i.files) {
			// The caller of describe gets the error; here it must not spoil the template, and
			// neither must a file that it opened.
			p.template.skipWarm()
			return p.instance(ctx)
		}
		captured, err := i.capture()
		if err != nil {
			return nil, fmt.Errorf("%w: template: %w", engine.ErrEngine, err)
		}
		t = p.template.set(captured)
	}
	if err := i.adopt(t); err != nil {
		return nil, err
	}
	made = true
	return i, nil
}

// initialisers are the exports that start a guest's runtime, in their order.
func initialisers(m *wasm.Module) []string {
	has := func(name string) bool {
		ex, ok := m.Export(name)
		return ok && ex.Kind == wasm.KindFunc
	}
	switch {
	case has("hs_init") && has("_initialize"):
		return []string{"_initialize", "hs_init"}
	case has("hs_init"):
		return []string{"hs_init"}
	case has("_initialize"):
		return []string{"_initialize"}
	case has("__wasm_call_ctors"):
		return []string{"__wasm_call_ctors"}
	}
	return nil
}
