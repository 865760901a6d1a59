package meter_test

import (
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// FuzzRewrite holds three things for any bytes. Nothing panics. What the engine
// compiles still compiles when it is rewritten, or is refused as unsupported. And
// what the engine refuses does not become valid.
func FuzzRewrite(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "host", "testdata", "*.wasm"))
	if err != nil || len(files) == 0 {
		f.Fatalf("no guests: %v", err)
	}
	for _, name := range files {
		b, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b)
	}
	for _, c := range costs() {
		f.Add(costModule(c.body))
	}
	for _, s := range segments() {
		f.Add(segmentModule(s.segment, s.prepare))
	}
	for seed := range uint64(8) {
		f.Add(jumper(seed, true))
	}
	for _, in := range intrusions() {
		f.Add(in.bin)
	}
	// An empty custom section that comes last when the broken name section is gone.
	f.Add(module(enc(sCustom, sized(sized("")))))
	f.Add(module(enc(sCustom, sized(sized("empty"))), enc(sCustom, sized(sized("name"), "0\x06000000\x020\x010\x00"))))
	rt := wazero.NewRuntimeWithConfig(f.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features()))
	compiles := func(t *testing.T, bin []byte) (err error) {
		t.Helper()
		defer func() {
			if r := recover(); r != nil { // the engine's own fault: a body shorter than its locals
				err = fmt.Errorf("panic: %v", r)
			}
		}()
		m, err := rt.CompileModule(t.Context(), bin)
		if err != nil {
			return err
		}
		return m.Close(t.Context())
	}
	f.Fuzz(func(t *testing.T, bin []byte) {
		m, err := wasm.Parse(bin)
		if err != nil {
			return // the parser has a fuzz target of its own
		}
		opts := options()
		opts.MaxTable = math.MaxUint32
		r, err := meter.Rewrite(m, opts)
		if errors.Is(err, meter.ErrLimit) || errors.Is(err, meter.ErrInvalid) && strings.Contains(err.Error(), "is too large") {
			return // the engine itself would take gigabytes to find out
		}
		errPlain := compiles(t, bin)
		if errPlain != nil && (strings.Contains(errPlain.Error(), "section custom") || strings.Contains(errPlain.Error(), "custom section")) {
			return // a section that the rewriter leaves out; it is not code
		}
		switch {
		case errors.Is(err, meter.ErrUnsupported): // it is refused
		case err != nil && errPlain == nil:
			t.Fatalf("refused what the engine takes: %v", err)
		case err != nil:
		default:
			errMetered := compiles(t, r.Wasm)
			if errMetered != nil && strings.HasPrefix(errMetered.Error(), "panic") {
				t.Fatal(errMetered)
			}
			if (errPlain == nil) != (errMetered == nil) {
				t.Fatalf("plain: %v\nmetered: %v", errPlain, errMetered)
			}
			if _, err := wasm.Parse(r.Wasm); err != nil {
				t.Fatalf("the rewritten module cannot be parsed: %v", err)
			}
		}
	})
}
