package compile

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"sync/atomic"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mortise-dev/mortise/internal/engine"
)

// childReady is set when main has called CompileChild.
var childReady atomic.Bool //nolint:gochecknoglobals // a process is one that can be its own child, or not

// Child returns at once, except in a process that a [Process] has started: there it compiles, and ends the
// process. Call it first in main, before anything is read from the environment or from files.
func Child() {
	if os.Getenv(compileVar) == "" {
		childReady.Store(true)
		return
	}
	code, err := compileHere(os.Stdin)
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, err)
		os.Exit(code) //nolint:forbidigo // the process is a child that does nothing else
	}
	_, _ = fmt.Fprintln(os.Stdout, compileDone)
	os.Exit(0) //nolint:forbidigo // likewise
}

// compileHere compiles what it reads into the cache. With an error comes the exit code.
func compileHere(in io.Reader) (int, error) {
	var size [4]byte
	if _, err := io.ReadFull(in, size[:]); err != nil {
		return compileFault, err
	}
	text := make([]byte, min(binary.LittleEndian.Uint32(size[:]), maxChildText))
	if _, err := io.ReadFull(in, text); err != nil {
		return compileFault, err
	}
	var job compileJob
	if err := json.Unmarshal(text, &job); err != nil {
		return compileFault, err
	}
	if err := limitChild(job.Memory, job.Seconds*int64(runtime.GOMAXPROCS(0))); err != nil {
		return compileFault, err
	}
	debug.SetMemoryLimit(job.Memory / 4 * 3) // so that garbage is not what ends it
	wasm, err := io.ReadAll(in)
	if err != nil {
		return compileFault, err
	}
	cache, err := wazero.NewCompilationCacheWithDir(job.CacheDir)
	if err != nil {
		return compileFault, err
	}
	return job.compile(context.Background(), cache, wasm) //nolint:forbidigo // nothing cancels a child but its end
}

// compile compiles a module into a cache. The process ends after it, which closes what it makes.
func (j *compileJob) compile(ctx context.Context, cache wazero.CompilationCache, wasm []byte) (int, error) {
	config := wazero.NewRuntimeConfigCompiler().WithDebugInfoEnabled(false).WithCompilationCache(cache).
		WithCoreFeatures(j.Features).WithCloseOnContextDone(j.Interruptible)
	ctx = experimental.WithCompilationWorkers(ctx, runtime.GOMAXPROCS(0))
	if j.Interruptible {
		ctx = ListenWASI(ctx, func(api.FunctionDefinition) experimental.FunctionListener {
			return experimental.FunctionListenerFunc(func(context.Context, api.Module, api.FunctionDefinition, []uint64, experimental.StackIterator) {})
		})
	}
	_, err := wazero.NewRuntimeWithConfig(ctx, config).CompileModule(ctx, wasm)
	if _, broken := errors.AsType[*os.PathError](err); broken {
		return compileFault, err
	}
	return compileRefused, err
}

// InTime has wazero compile in several goroutines, which look at the context between functions: one alone, as on a machine with one
// processor, does not.
func InTime(ctx context.Context) context.Context {
	return experimental.WithCompilationWorkers(ctx, max(2, runtime.GOMAXPROCS(0)))
}

// ListenWASI makes the functions of WASI that are compiled with the context call a listener, which is part of the code. What the
// listener does is not.
func ListenWASI(ctx context.Context, listener func(def api.FunctionDefinition) experimental.FunctionListener) context.Context {
	return experimental.WithFunctionListenerFactory(ctx, experimental.FunctionListenerFactoryFunc(
		func(def api.FunctionDefinition) experimental.FunctionListener {
			if def.ModuleName() != engine.ModuleWASI || def.GoFunction() == nil {
				return nil
			}
			return listener(def)
		}))
}
