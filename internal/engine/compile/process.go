package compile

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/tetratelabs/wazero/api"

	"github.com/mortise-dev/mortise/internal/engine"
)

// Process makes a host compile each module in a child process first, which writes the code to Config.CacheDir; the
// host then reads it there. A module that takes more memory or time than it may ends the child and not the host: bounds
// on what a module consists of can never name everything that a compiler is slow at. A module that the folder has is not
// compiled again, so it needs no child.
//
// The child is this program again, with one environment variable and no other: main, or TestMain, must begin with
// [Child]. Memory is bounded on Linux only; elsewhere the time is.
type Process struct {
	// MemoryBytes bounds the memory that compiling a module takes. Default 2 GiB.
	MemoryBytes int64
}

// defaultCompileMemory is more than ten times what the largest guests of Go's toolchain take.
const defaultCompileMemory = 2 << 30

// compileVar is the environment variable that makes a process one that compiles.
const compileVar = "MORTISE_COMPILE_CHILD"

// compileDone is what a child writes when the code is in the cache.
const compileDone = "compiled"

// Exit codes of a child, besides that of success and those of Go's runtime.
const (
	// compileRefused means that the engine refuses the module; standard error explains why.
	compileRefused = 64
	// compileFault means that the child could not read what to do, or write the code.
	compileFault = 65
)

// maxChildText is how much of what a child writes is read.
const maxChildText = 64 << 10

// ErrCompileChild means that a child process ended without the code.
var ErrCompileChild = errors.New("the compiling process ended")

// compileJob is the request to a child, in JSON behind its length. The module follows.
type compileJob struct {
	// CacheDir is the engine's folder.
	CacheDir string
	CompileMode
	// Seconds of processor time and bytes of memory that the child may take.
	Seconds, Memory int64
}

// CompileMode is what the compiled code depends on besides the module.
type CompileMode struct {
	Features api.CoreFeatures
	// Interruptible makes the code look at whether its context is done, and call a listener around each function of WASI,
	// as the Extism engine needs it. Both are part of the code.
	Interruptible bool
}

// Possible reports whether [Child] was called in this process, so that it can be its own child.
func (*Process) Possible() bool { return childReady.Load() }

// Check reports what is wrong with the config of a host whose cache is in dir.
func (p *Process) Check(dir string) error {
	switch {
	case p == nil:
		return nil
	case dir == "":
		return errors.New("host: config: Compile needs CacheDir, in which the code is handed over")
	case p.MemoryBytes < 0:
		return fmt.Errorf("host: config: Compile.MemoryBytes %d is negative; use 0 for the default", p.MemoryBytes)
	case !p.Possible():
		return errors.New("host: config: Compile needs a program that can be its own child; call host.CompileChild first in main")
	}
	return nil
}

// Precompile has a child compile a module into the cache, unless the cache has it. A nil CompileProcess does nothing.
func (p *Process) Precompile(ctx context.Context, cache *DiskCache, module string, mode CompileMode, wasm []byte) error {
	if p == nil {
		return nil
	}
	key := mode.key(wasm)
	if cache.Has(key) {
		return nil
	}
	dir, err := filepath.Abs(cache.Dir)
	if err != nil {
		return fmt.Errorf("host: module %q: %w: compiling process: %w", module, engine.ErrEngine, err)
	}
	job := compileJob{CacheDir: dir, CompileMode: mode, Memory: cmp.Or(p.MemoryBytes, defaultCompileMemory)}
	if deadline, ok := ctx.Deadline(); ok {
		job.Seconds = int64(time.Until(deadline)/time.Second) + 1
	}
	switch err := job.run(ctx, wasm); {
	case errors.Is(err, engine.ErrEngine):
		return fmt.Errorf("host: module %q: %w", module, err)
	case err != nil:
		return err
	}
	return cache.Add(key)
}

// key names the mark of what was compiled.
func (m CompileMode) key(wasm []byte) string {
	h := sha256.New()
	_, _ = fmt.Fprintf(h, "%d %t\n", m.Features, m.Interruptible)
	_, _ = h.Write(wasm)
	return "child-" + hex.EncodeToString(h.Sum(nil))
}

// run runs a child. Its error is that of the context, one that begins with what the engine says about the module,
// errCompileChild, or ErrEngine.
func (j *compileJob) run(ctx context.Context, wasm []byte) error {
	self, err := os.Executable()
	if err != nil {
		return fmt.Errorf("%w: compiling process: %w", engine.ErrEngine, err)
	}
	text, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("%w: compiling process: %w", engine.ErrEngine, err)
	}
	input := append(binary.LittleEndian.AppendUint32(nil, uint32(len(text))), text...) // far below 4 GiB
	cmd := exec.CommandContext(ctx, self)
	cmd.Env = append(childEnv(), compileVar+"=1")
	cmd.Dir = j.CacheDir
	cmd.SysProcAttr = childAttributes()
	cmd.Stdin = io.MultiReader(bytes.NewReader(input), bytes.NewReader(wasm))
	said, wrong := engine.Head{Limit: maxChildText}, engine.Head{Limit: maxChildText}
	cmd.Stdout, cmd.Stderr = &said, &wrong
	cmd.WaitDelay = 5 * time.Second
	err = cmd.Run()
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return j.outcome(err, said.String(), wrong.String())
}

// outcome is what became of a child that has ended with an error, or nil, and has written this to standard output and error.
func (j *compileJob) outcome(ended error, said, wrong string) error {
	exit, exited := errors.AsType[*exec.ExitError](ended)
	switch {
	case ended == nil && said == compileDone:
		return nil
	case ended == nil:
		return fmt.Errorf("%w: compiling process: it ended without an answer; call host.CompileChild first in main", engine.ErrEngine)
	case !exited:
		return fmt.Errorf("%w: compiling process: %w", engine.ErrEngine, ended)
	case exit.ExitCode() == compileRefused:
		return errors.New(wrong)
	case exit.ExitCode() == compileFault:
		return fmt.Errorf("%w: compiling process: %s", engine.ErrEngine, engine.Clean(engine.FirstLine(wrong), engine.MaxDetail))
	}
	return fmt.Errorf("%w (%s: %s); it may take %d bytes of memory", ErrCompileChild, exit.ProcessState, engine.Clean(engine.FirstLine(wrong), engine.MaxDetail), j.Memory)
}

// childEnv is what a child gets of the environment: what a program needs to start, and nothing that could be a secret.
func childEnv() []string {
	var out []string
	for _, name := range []string{"SystemRoot", "GOCOVERDIR"} {
		if v, set := os.LookupEnv(name); set {
			out = append(out, name+"="+v)
		}
	}
	return out
}
