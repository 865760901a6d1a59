package host

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"runtime"
	"slices"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// extismEngine runs guests on github.com/extism/go-sdk. It is the reference
// that the native engine is compared with.
type extismEngine struct {
	cache *diskCache
	child *CompileProcess
}

func newExtism(cache *diskCache, cfg Config) *extismEngine {
	if _, set := os.LookupEnv("EXTISM_ENABLE_WASI_OUTPUT"); set {
		cfg.Logger.Warn("guests write to stdout and stderr of this process",
			"variable", "EXTISM_ENABLE_WASI_OUTPUT", "mend", "unset it")
	}
	// Below debug go-sdk would write messages of its own to the standard logger.
	extism.SetLogLevel(extism.LogLevelDebug)
	return &extismEngine{cache: cache, child: cfg.Compile}
}

// codeCache returns a cache for one module. One for all would keep the code of
// closed modules, because go-sdk does not close what it compiles.
func (e *extismEngine) codeCache() (wazero.CompilationCache, error) {
	if e.cache == nil {
		return wazero.NewCompilationCache(), nil
	}
	return wazero.NewCompilationCacheWithDir(e.cache.dir)
}

func (e *extismEngine) compile(ctx context.Context, src source) (_ program, err error) {
	if err := fits(src); err != nil {
		return nil, err
	}
	cache, err := e.codeCache()
	if err != nil {
		return nil, fmt.Errorf("host: module %q: %w: compilation cache: %w", src.name, ErrEngine, err)
	}
	p := &extismProgram{source: src, cache: cache}
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("host: module %q: %w: compilation panicked: %s", src.name, ErrEngine, clean(fmt.Sprint(r), maxDetail))
		}
		if err != nil {
			_ = cache.Close(context.WithoutCancel(ctx))
		}
	}()
	wasms, err := p.parts()
	if err != nil {
		return nil, err
	}
	for _, one := range wasms {
		mode := compileMode{Features: api.CoreFeaturesV2, Closing: true, Listens: listensWASI}
		if err := e.child.precompile(ctx, e.cache, src.name, mode, one.Data); err != nil {
			return nil, err
		}
	}
	config := extism.PluginConfig{
		// Debug information stays off: a trap would read DWARF that the guest wrote.
		RuntimeConfig: wazero.NewRuntimeConfig().WithCloseOnContextDone(true).
			WithDebugInfoEnabled(false).WithCompilationCache(cache),
		EnableWasi: p.needsWASI(),
	}
	manifest := extism.Manifest{
		Config: maps.Clone(src.grants.Config),
		// A zero in any of these fields would mean a limit of zero, not none.
		Memory: &extism.ManifestMemory{
			MaxPages:             uint32(src.limits.MemoryPages), // between 17 and 65536
			MaxHttpResponseBytes: 1,
			MaxVarBytes:          int64(src.limits.VarBytes),
		},
	}
	for _, one := range wasms {
		manifest.Wasm = append(manifest.Wasm, one)
	}
	ctx = listenWASI(experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0)))
	p.compiled, err = extism.NewCompiledPlugin(ctx, manifest, config, p.functions())
	if err != nil {
		return nil, err
	}
	return p, nil
}

// fits refuses what go-sdk cannot do.
func fits(src source) error {
	for _, m := range src.modules() {
		if err := meter.Check(m); err != nil {
			return err
		}
		if m.Names != nil {
			return fmt.Errorf("the name section is broken: %w; strip it from the module, or use the native engine", m.Names)
		}
	}
	for _, l := range src.links {
		if imports(l.parsed, moduleHost) { // a host function does not learn who calls it
			return fmt.Errorf("the link %q imports from %s, which only the main module can on this engine", clean(l.name, maxName), moduleHost)
		}
	}
	return nil
}

// extismProgram is a compiled module with a wazero runtime of its own.
type extismProgram struct {
	source

	compiled *extism.CompiledPlugin
	cache    wazero.CompilationCache
}

// parts are the binaries of a program, the main one last, with the names that
// this package answers.
func (p *extismProgram) parts() ([]extism.WasmData, error) {
	var out []extism.WasmData
	for _, l := range append(slices.Clone(p.links), linked{"main", p.wasm, p.parsed}) {
		binary, err := p.imported(l)
		if err != nil {
			return nil, err
		}
		out = append(out, extism.WasmData{Data: binary, Name: l.name})
	}
	return out, nil
}

func (e *extismEngine) close(context.Context) error { return nil }

// needsWASI tells whether to offer WASI. go-sdk initialises reactors only when
// it is on, so a module with an initialiser gets it too.
func (p *extismProgram) needsWASI() bool {
	return p.initialised() || slices.ContainsFunc(p.modules(), func(m *wasm.Module) bool { return imports(m, moduleWASI) })
}

// initialised tells whether go-sdk runs something before the first call of an
// instance.
func (p *extismProgram) initialised() bool {
	return slices.ContainsFunc(p.modules(), func(m *wasm.Module) bool {
		return slices.ContainsFunc([]string{"hs_init", "_initialize", "__wasm_call_ctors"}, func(name string) bool {
			ex, ok := m.Export(name)
			return ok && ex.Kind == wasm.KindFunc
		})
	})
}

// probe returns an export whose call makes go-sdk initialise the instance.
func (p *extismProgram) probe() string {
	for _, ex := range p.parsed.Exports {
		if ex.Name != "_start" && ex.Name != "_initialize" && ex.Kind == wasm.KindFunc && len(ex.Func.Results) <= 1 {
			return ex.Name
		}
	}
	return ""
}

func (p *extismProgram) instantiate(ctx context.Context, sticky bool) (_ instance, err error) {
	i := newExtismInstance(p, sticky)
	defer func() {
		if r := recover(); r != nil {
			err = fmt.Errorf("%w: making an instance panicked: %s", ErrEngine, clean(fmt.Sprint(r), maxDetail))
		}
		if err != nil && i.plugin != nil {
			_ = i.close(context.WithoutCancel(ctx))
		}
	}()
	i.done = ctx.Done()
	config := wazero.NewModuleConfig().WithStdout(&i.out).WithStderr(&i.err).WithNanosleep(i.sleep)
	if p.grants.Clock {
		config = config.WithSysWalltime().WithSysNanotime()
	}
	random := io.Reader(mathrand.NewChaCha8([32]byte{})) // the same bytes as on the native engine
	if p.grants.Random {
		random = rand.Reader
	}
	config = config.WithRandSource(meteredReader{i, random})
	config = p.caps.mountAll(config, i)
	made := experimental.WithMemoryAllocator(ctx, &i.memories)
	made = experimental.WithCloseNotifier(made, experimental.CloseNotifyFunc(i.notifyClosed))
	i.plugin, err = p.compiled.Instance(made, extism.PluginInstanceConfig{ModuleConfig: config})
	if err != nil {
		return nil, i.initFault(ctx, err)
	}
	i.plugin.SetLogger(i.onLog)
	if err := i.initialise(ctx); err != nil {
		return nil, err
	}
	return i, nil
}

// metered implements program.
func (p *extismProgram) metered() (bool, string) {
	return false, "is not metered: the engine " + string(EngineExtism) + " does not count; deadlines close the instance"
}

func (p *extismProgram) close(ctx context.Context) error {
	err := p.compiled.Close(ctx)
	if cacheErr := p.cache.Close(ctx); err == nil {
		err = cacheErr
	}
	return err
}
