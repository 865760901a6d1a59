package host_test

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// typedReferences is a guest that the rewriter refuses, because it calls through a
// typed reference. Its exports are run, spin, recurse, grow and state; start, if
// given, is code that runs when an instance is made.
func typedReferences(start ...any) []byte {
	const plain, fib, nothing = 0, 1, 2 // types: () -> i32, (i32) -> i32, () -> ()
	exports := make([][]byte, 0, 5)
	for n, name := range []string{"run", "spin", "recurse", "grow", "state"} {
		exports = append(exports, export(name, 0, n+1))
	}
	return wasmOf(
		sec(sType, fn(nil, enc(i32)), fn(enc(i32), enc(i32)), fn(nil, nil)),
		sec(sFunc, enc(plain), enc(plain), enc(plain), enc(plain), enc(plain), enc(plain), enc(fib), enc(nothing)),
		sec(sTable, enc(0x70, 0, 1)), sec(sMemory, enc(0, 1)), sec(sGlobal, enc(i32, 1, konst, 0, end)),
		sec(sExport, exports...), enc(sStart, sized(7)),
		sec(sElem, enc(3, 0, vec(enc(0)))), // declared, so that ref.func may name it
		sec(sCode,
			body(konst, 0),
			body(0xd2, 0, 0x14, plain),               // run: ref.func, call_ref
			body(0x03, 0x40, 0x0c, 0, end, konst, 0), // spin: loop, br
			body(konst, 60, 0x10, 6),                 // recurse: fib(60), no loop
			body(0xd0, 0x70, konst, leb32(50_000_000), 0xfc, 15, 0, konst, 1, 0x6a), // grow: table.grow + 1, so 0 when it was refused
			body(0x23, 0, konst, 1, 0x24, 0),                                        // state: what it was, and now it is 1
			body(0x20, 0, konst, 2, 0x48, 0x04, 0x40, 0x20, 0, 0x0f, end, // fib
				0x20, 0, konst, 1, 0x6b, 0x10, 6, 0x20, 0, konst, 2, 0x6b, 0x10, 6, 0x6a),
			body(start...)))
}

// leb32 encodes a signed number that is not negative.
func leb32(v int) []byte {
	out := leb(v)
	if out[len(out)-1]&0x40 != 0 {
		out[len(out)-1] |= 0x80
		out = append(out, 0)
	}
	return out
}

// TestUnmetered_info tells the operator, once in the log.
func TestUnmetered_info(t *testing.T) {
	t.Parallel()
	var out logBuffer
	h := newHost(t, host.Config{Logger: logger(&out, slog.LevelInfo)})
	m, err := h.Load(t.Context(), host.Spec{Name: "typed", Wasm: typedReferences()})
	if err != nil {
		t.Fatal(err)
	}
	const note = "is not metered: uses a feature that cannot be metered: opcode 0x14 at offset 4; deadlines close the instance; fuel is not counted"
	if info := m.Info(); info.Metered || len(info.Notes) != 1 || info.Notes[0] != note {
		t.Errorf("metered %t, notes %q", info.Metered, info.Notes)
	}
	if _, err := m.Call(t.Context(), "run", nil); err != nil {
		t.Error(err)
	}
	if n := strings.Count(out.String(), "module is not metered"); n != 1 || !strings.Contains(out.String(), "module=typed") {
		t.Errorf("%d warnings: %s", n, out.String())
	}
	onEngines(t, func(t *testing.T, e host.EngineName) {
		t.Helper()
		if info := load(t, e, host.Spec{Path: wat("echo")}).Info(); info.Metered != (e == host.EngineNative) || len(info.Notes) == 0 != info.Metered {
			t.Errorf("echo: metered %t, notes %q", info.Metered, info.Notes)
		}
	})
}

// TestUnmetered_fresh wants each call on an instance of its own, and tables bounded.
func TestUnmetered_fresh(t *testing.T) {
	t.Parallel()
	m := load(t, host.EngineNative, host.Spec{Name: "typed", Wasm: typedReferences(), Limits: host.Limits{Instances: 1}})
	for range 5 {
		for _, export := range []string{"state", "grow"} {
			if _, err := m.Call(t.Context(), export, nil); err != nil {
				t.Errorf("%s: %v", export, err)
			}
		}
	}
	if s := m.Stats(); s.Calls != 10 || s.Replaced != 10 || s.Instances != 0 || s.Fuel != 0 {
		t.Errorf("%+v", s)
	}
}

// TestUnmetered_stopped spins, and recurses without a loop, which the engine alone
// would not stop.
func TestUnmetered_stopped(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	m, err := h.Load(t.Context(), host.Spec{Name: "typed", Wasm: typedReferences(), Limits: host.Limits{Timeout: 500 * time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	for _, export := range []string{"spin", "recurse"} {
		begin := time.Now()
		_, err := m.Call(t.Context(), export, nil)
		trap := wantTrap(t, err, host.TrapDeadline)
		if !errors.Is(trap, context.DeadlineExceeded) || time.Since(begin) > 10*time.Second {
			t.Errorf("%s: %v after %v", export, trap, time.Since(begin))
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if _, err := m.Call(ctx, export, nil); !errors.Is(err, context.Canceled) {
			t.Errorf("%s, given up: %v", export, err)
		}
		if _, err := m.Call(t.Context(), "run", nil); err != nil {
			t.Errorf("after %s: %v", export, err)
		}
	}
}

// TestUnmetered_start spins before the first call.
func TestUnmetered_start(t *testing.T) {
	t.Parallel()
	h := newHost(t, host.Config{})
	limits := host.Limits{InitTimeout: 50 * time.Millisecond}
	for name, code := range map[string][]byte{"spin": enc(0x03, 0x40, 0x0c, 0, end), "recurse": enc(konst, 60, 0x10, 6, 0x1a)} {
		_, err := h.Load(t.Context(), host.Spec{Name: name, Wasm: typedReferences(code), Limits: limits})
		if !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "did not start: out of time") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestUnmetered_close ends a call in progress.
func TestUnmetered_close(t *testing.T) {
	t.Parallel()
	for _, export := range []string{"spin", "recurse"} {
		closeDuring(t, export)
	}
}

func closeDuring(t *testing.T, export string) {
	t.Helper()
	h, err := host.New(host.Config{Engine: hosttest.Engine(host.EngineNative), CacheDir: sharedCache})
	if err != nil {
		t.Fatal(err)
	}
	m, err := h.Load(t.Context(), host.Spec{Name: "typed", Wasm: typedReferences(), Limits: host.Limits{Timeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		_, err := m.Call(t.Context(), export, nil)
		ended <- err
	}()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := h.Close(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if err := <-ended; !errors.Is(err, host.ErrClosed) {
		t.Errorf("%s: %v", export, err)
	}
}
