package extism

import (
	"context"
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	mathrand "math/rand/v2"
	"os"
	"slices"

	extism "github.com/extism/go-sdk"
	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/compile"
	"github.com/mortise-dev/mortise/internal/engine/files"
	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// Engine runs guests on github.com/extism/go-sdk. The native engine
// is compared with it.
type Engine struct {
	cache *compile.DiskCache
	child *compile.Process
}

// Maker makes the Extism engine.
type Maker struct{}

// Name implements Engine.
func (Maker) Name() string { return "extism" }

// Open implements Engine.
func (Maker) Open(s compile.Setup) engine.Engine {
	if _, set := os.LookupEnv("EXTISM_ENABLE_WASI_OUTPUT"); set {
		s.Logger.Warn("guests write to stdout and stderr of this process",
			"variable", "EXTISM_ENABLE_WASI_OUTPUT", "hint", "unset it")
	}
	// Below debug go-sdk would write messages of its own to the standard logger.
	extism.SetLogLevel(extism.LogLevelDebug)
	return &Engine{cache: s.Cache, child: s.Child}
}

// Compile implements engine.Engine.
func (e *Engine) Compile(ctx context.Context, src engine.Source) (_ engine.Program, err error) {
	if err := fits(src); err != nil {
		return nil, err
	}
	cache, err := e.cache.Code(src.Name)
	if err != nil {
		return nil, err
	}
	p := &extismProgram{Source: src, cache: cache}
	defer func() {
		if err != nil {
			_ = cache.Close(context.WithoutCancel(ctx))
		}
	}()
	defer engine.Recovered(&err, fmt.Sprintf("host: module %q: compilation", src.Name))
	wasms, err := p.parts()
	if err != nil {
		return nil, err
	}
	for _, one := range wasms {
		mode := compile.CompileMode{Features: api.CoreFeaturesV2, Interruptible: true}
		if err := e.child.Precompile(ctx, e.cache, src.Name, mode, one.Data); err != nil {
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
		Config: maps.Clone(src.Config),
		// A zero in any of these fields would mean a limit of zero, not none.
		Memory: &extism.ManifestMemory{
			MaxPages:             uint32(src.Limits.MemoryPages), // between 17 and 65536
			MaxHttpResponseBytes: 1,
			MaxVarBytes:          int64(src.Limits.VarBytes),
		},
	}
	for _, one := range wasms {
		manifest.Wasm = append(manifest.Wasm, one)
	}
	ctx = compile.ListenWASI(compile.InTime(ctx), newListener)
	p.compiled, err = extism.NewCompiledPlugin(ctx, manifest, config, p.functions())
	if err != nil {
		return nil, err
	}
	return p, nil
}

// fits refuses what go-sdk cannot do.
func fits(src engine.Source) error {
	for _, m := range src.Modules() {
		if err := meter.Check(m); err != nil {
			return err
		}
		if m.Names != nil {
			return fmt.Errorf("the name section is broken: %w; strip it from the module, or use the native engine", m.Names)
		}
	}
	for _, l := range src.Links {
		if engine.Imports(l.Parsed, engine.ModuleHost) { // a host function does not learn who calls it
			return fmt.Errorf("the link %q imports from %s, which only the main module can on this engine", engine.Clean(l.Name, engine.MaxName), engine.ModuleHost)
		}
	}
	return nil
}

// extismProgram is a compiled module with a wazero runtime of its own.
type extismProgram struct {
	engine.Source

	compiled *extism.CompiledPlugin
	cache    wazero.CompilationCache
}

// parts are the binaries of a program, the main one last, with the names that
// this package answers.
func (p *extismProgram) parts() ([]extism.WasmData, error) {
	var out []extism.WasmData
	for _, l := range append(slices.Clone(p.Links), engine.Linked{Name: "main", Wasm: p.Wasm, Parsed: p.Parsed}) {
		binary, err := p.imported(l)
		if err != nil {
			return nil, err
		}
		out = append(out, extism.WasmData{Data: binary, Name: l.Name})
	}
	return out, nil
}

// Close implements engine.Engine.
func (e *Engine) Close(context.Context) error { return nil }

// needsWASI reports whether to offer WASI. go-sdk initialises reactors only when
// it is on, so a module with an initialiser gets it too.
func (p *extismProgram) needsWASI() bool {
	return p.initialised() || slices.ContainsFunc(p.Modules(), func(m *wasm.Module) bool { return engine.Imports(m, engine.ModuleWASI) })
}

// initialised reports whether go-sdk runs something before the first call of an
// instance.
func (p *extismProgram) initialised() bool {
	return slices.ContainsFunc(p.Modules(), func(m *wasm.Module) bool {
		return slices.ContainsFunc([]string{"hs_init", "_initialize", "__wasm_call_ctors"}, func(name string) bool {
			ex, ok := m.Export(name)
			return ok && ex.Kind == wasm.KindFunc
		})
	})
}

// probe returns an export whose call makes go-sdk initialise the instance.
func (p *extismProgram) probe() string {
	for _, ex := range p.Parsed.Exports {
		if ex.Name != "_start" && ex.Name != "_initialize" && ex.Kind == wasm.KindFunc && len(ex.Func.Results) <= 1 {
			return ex.Name
		}
	}
	return ""
}

func (p *extismProgram) Instantiate(ctx context.Context, sticky bool) (_ engine.Instance, err error) {
	i := newExtismInstance(p, sticky)
	defer func() {
		if err != nil && i.plugin != nil {
			_ = i.Close(context.WithoutCancel(ctx))
		}
	}()
	defer engine.Recovered(&err, "making an instance")
	i.done = ctx.Done()
	config := wazero.NewModuleConfig().WithStdout(&i.Out).WithStderr(&i.Err).WithNanosleep(i.sleep)
	if p.Clock {
		config = config.WithSysWalltime().WithSysNanotime()
	}
	random := io.Reader(mathrand.NewChaCha8([32]byte{})) // the same bytes as on the native engine
	if p.Random {
		random = rand.Reader
	}
	config = config.WithRandSource(engine.MeteredReader{Payer: i, R: random})
	config = files.MountAll(config, p.Mounts, i)
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

// Metered implements program.
func (p *extismProgram) Metered() (bool, string) {
	return false, "is not metered: the engine extism does not count; deadlines close the instance"
}

func (p *extismProgram) Close(ctx context.Context) error {
	err := p.compiled.Close(ctx)
	if cacheErr := p.cache.Close(ctx); err == nil {
		err = cacheErr
	}
	return err
}
