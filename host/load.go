package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"regexp"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/engine/compile"
	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// loadError makes a LoadError of a module.
func loadError(spec Spec, p problem) *LoadError {
	return &LoadError{
		Module:  engine.Clean(spec.Name, engine.MaxName),
		Path:    engine.Clean(spec.Path, 4096),
		Problem: p.text,
		Hint:    p.hint,
		Err:     p.err,

		Settings: settings.FindAllString(p.hint, -1),
	}
}

// settings finds the fields that a hint names.
var settings = regexp.MustCompile(`\b(Spec|Limits|Grants)\.[A-Z][A-Za-z0-9]*|\bhost/capability/[a-z]+`)

// check reads the binary and everything that can be known without compiling it.
func check(spec Spec) (engine.Source, Info, error) {
	src := engine.Source{Name: engine.Clean(spec.Name, engine.MaxName), Limits: spec.Limits.bounds()}
	opened, bad := open(spec.Path, spec.Wasm, spec.SHA256, spec.Limits.ModuleBytes)
	info := Info{SHA256: opened.sha256, Size: len(opened.bin)}
	if bad != nil {
		return src, info, loadError(spec, *bad)
	}
	if src.Links, info.Links, bad = checkLinks(spec); bad != nil {
		return src, info, loadError(spec, *bad)
	}
	byName := links{}
	for _, l := range src.Links {
		byName[l.Name] = l.Parsed
	}
	for _, p := range append(problems(opened.parsed, spec.Limits.MemoryPages, byName, &spec.Grants), required(opened.parsed, spec.Require)...) {
		if p.err != nil {
			return src, info, loadError(spec, p)
		}
	}
	src.Wasm, src.Parsed = opened.bin, opened.parsed
	for _, ex := range src.Parsed.Exports {
		if callable(ex) {
			info.Exports = append(info.Exports, ex.Name)
		}
	}
	return src, info, nil
}

// binary is a module that was read.
type binary struct {
	bin    []byte
	sha256 string
	parsed *wasm.Module
}

// open reads a module and compares it with its checksum.
func open(path string, given []byte, sum string, most int) (b binary, bad *problem) {
	if b.bin, bad = read(path, given, most); bad != nil {
		return b, bad
	}
	digest := sha256.Sum256(b.bin)
	b.sha256 = hex.EncodeToString(digest[:])
	if bad := checksum(sum, b.sha256); bad != nil {
		return b, bad
	}
	var err error
	if b.parsed, err = wasm.Parse(b.bin); err != nil {
		p := parseProblem(b.bin, err)
		return b, &p
	}
	return b, nil
}

// read returns the bytes of a binary, at most so many of them. They are
// the host's own: what is made of them later must not change with the embedder's.
func read(path string, given []byte, most int) ([]byte, *problem) {
	tooLarge := &problem{
		text: fmt.Sprintf("is larger than %d bytes", most),
		hint: "strip it, or raise Limits.ModuleBytes",
		err:  ErrLimit,
	}
	if given != nil {
		if len(given) > most {
			return nil, tooLarge
		}
		return bytes.Clone(given), nil
	}
	unreadable := func(err error, hint string) *problem {
		return &problem{"cannot be read", hint, fmt.Errorf("%w: %w", ErrUnreadable, err)}
	}
	const forUser = "make the file readable for this user"
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &problem{"was not found", "check the path, or build the module first", fmt.Errorf("%w: %w", ErrNotFound, err)}
	case err != nil:
		return nil, unreadable(err, forUser)
	case info.IsDir():
		return nil, &problem{"is a directory", "give the path of the .wasm file in it", ErrUnreadable}
	case !info.Mode().IsRegular():
		return nil, &problem{"is not a regular file", "give the path of a .wasm file", ErrUnreadable}
	case info.Size() > int64(most):
		return nil, tooLarge
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, unreadable(err, forUser)
	}
	defer f.Close()
	bin, err := io.ReadAll(io.LimitReader(f, int64(most)+1))
	if err != nil {
		return nil, unreadable(err, "check the disk")
	}
	if len(bin) > most {
		return nil, tooLarge
	}
	return bin, nil
}

// checksum compares the binary's hash with the one asked for.
func checksum(want, got string) *problem {
	want = strings.ToLower(strings.TrimPrefix(strings.TrimSpace(want), "sha256:"))
	if want == "" || want == got {
		return nil
	}
	if raw, err := hex.DecodeString(want); err != nil || len(raw) != sha256.Size {
		return &problem{"has a Spec.SHA256 that is not 64 hexadecimal digits", "write the hash as sha256sum prints it", ErrChecksum}
	}
	return &problem{
		text: fmt.Sprintf("has SHA-256 %s, not %s", got, want),
		hint: "fetch the module again, or correct the checksum if the change is wanted",
		err:  ErrChecksum,
	}
}

// compile compiles and tells Config.OnCompile.
func (h *Host) compile(ctx context.Context, src engine.Source, spec Spec, info *Info) (engine.Program, error) {
	note := CompileInfo{Name: src.Name, Size: len(src.Wasm), Cached: h.cache.Has(info.SHA256)}
	h.cfg.OnCompile(note)
	start := time.Now()
	limited, cancel := context.WithTimeout(ctx, spec.Limits.CompileTimeout)
	defer cancel()
	prog, err := h.engine.Compile(limited, src)
	note.Done, note.Duration = true, time.Since(start)
	info.Compile, info.Cached = note.Duration, note.Cached
	if err != nil && !errors.Is(err, ErrEngine) {
		err = loadError(spec, compileProblem(ctx, spec, err))
	}
	note.Err = err
	h.cfg.OnCompile(note)
	if err != nil {
		return nil, err
	}
	var why string
	if info.Metered, why = prog.Metered(); why != "" {
		info.Notes = append(info.Notes, why)
	}
	if err := h.cache.Add(info.SHA256); err != nil {
		h.cfg.Logger.WarnContext(ctx, "cache mark not written", "module", src.Name, "error", err)
	}
	return prog, nil
}

// compileProblem words why a module was not compiled.
func compileProblem(ctx context.Context, spec Spec, err error) problem {
	switch {
	case errors.Is(err, meter.ErrLimit):
		return problem{
			text: "asks too much of the compiler: " + engine.Clean(strings.TrimPrefix(err.Error(), "meter: "), engine.MaxDetail),
			hint: "build it without inlining and unrolling so much, or split the function", err: ErrLimit,
		}
	case errors.Is(err, compile.ErrCompileChild):
		return problem{
			"was not compiled: " + engine.Clean(err.Error(), engine.MaxDetail),
			"build it smaller, or raise Config.Compile.MemoryBytes if the module is to be trusted", fmt.Errorf("%w: %w", ErrLimit, err),
		}
	case ctx.Err() != nil:
		return problem{"was not compiled: " + ctx.Err().Error(), "give Load more time", ctx.Err()}
	case errors.Is(err, context.DeadlineExceeded):
		return problem{
			fmt.Sprintf("was not compiled within %v", spec.Limits.CompileTimeout),
			"raise Limits.CompileTimeout, or build it smaller", fmt.Errorf("%w: %w", ErrLimit, err),
		}
	}
	return problem{
		"is refused by the engine: " + engine.Clean(strings.TrimPrefix(engine.FirstLine(err.Error()), "meter: "), engine.MaxDetail),
		"build it again with a current toolchain, without proposals beyond WebAssembly 2.0", ErrInvalid,
	}
}

// startError words the failure of a module's first instance.
func startError(spec Spec, err error) error {
	var trap *TrapError
	if !errors.As(err, &trap) {
		return err
	}
	hint := "see what the module does when it starts"
	if errors.Is(err, context.DeadlineExceeded) {
		hint = "make it start faster, or raise Limits.InitTimeout"
	}
	return loadError(spec, problem{"did not start: " + trap.Detail, hint, trap})
}
