package meter_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/internal/wasm"
	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// specDirs finds the spec suites that ship with wazero's module.
func specDirs(t *testing.T) []string {
	t.Helper()
	out, err := exec.Command("go", "list", "-m", "-f", "{{.Dir}}", "github.com/tetratelabs/wazero").Output()
	if err != nil {
		testskip.Missing(t, "the spec suites are not there: go list: %v", err)
	}
	root := filepath.Join(strings.TrimSpace(string(out)), "internal", "integration_test", "spectest")
	var dirs []string
	for _, name := range []string{"v1", "v2", "tail-call", "extended-const", "exception-handling", "threads"} {
		dirs = append(dirs, filepath.Join(root, name, "testdata"))
	}
	return dirs
}

type specValue struct {
	Type     string          `json:"type"`
	LaneType string          `json:"lane_type"`
	Value    json.RawMessage `json:"value"`
}

type specCommand struct {
	Type, Name, Filename, As string
	Line                     int
	ModuleType               string `json:"module_type"`
	Action                   struct {
		Type, Module, Field string
		Args                []specValue
	}
}

// world is one side of the comparison: modules as they are, or metered.
type world struct {
	rt      wazero.Runtime
	metered bool
	last    api.Module
	named   map[string]api.Module
	refills int
	// moved and starts count what was left to the host.
	moved, starts int
}

func newWorld(t *testing.T, spectest []byte, metered bool) *world {
	t.Helper()
	features := api.CoreFeaturesV2 | experimental.CoreFeaturesTailCall | experimental.CoreFeaturesExtendedConst |
		experimental.CoreFeaturesExceptionHandling | experimental.CoreFeaturesThreads
	w := &world{
		metered: metered, named: make(map[string]api.Module),
		rt: wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfig().WithCoreFeatures(features).WithMemoryLimitPages(4096)),
	}
	t.Cleanup(func() { _ = w.rt.Close(context.WithoutCancel(t.Context())) })
	_, err := w.rt.NewHostModuleBuilder("mortise:meter").NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(func(_ context.Context, m api.Module, _ []uint64) {
			w.refills++
			if g, ok := m.ExportedGlobal("mortise:fuel").(api.MutableGlobal); ok {
				g.Set(100_000)
			}
		}), nil, nil).Export("refill").Instantiate(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := w.rt.InstantiateWithConfig(t.Context(), spectest, wazero.NewModuleConfig().WithName("spectest")); err != nil {
		t.Fatal(err)
	}
	return w
}

// load instantiates a module; the error is the engine's or the rewriter's.
func (w *world) load(ctx context.Context, name string, bin []byte) error {
	mod, err := w.instantiate(ctx, "", bin)
	if err != nil {
		return err
	}
	w.last = mod
	if name != "" {
		w.named[name] = mod
	}
	return nil
}

// instantiate makes an instance with a name for imports, or without one.
func (w *world) instantiate(ctx context.Context, name string, bin []byte) (api.Module, error) {
	r := &meter.Result{Wasm: bin}
	if w.metered {
		m, err := wasm.Parse(bin)
		if err != nil {
			return nil, err
		}
		r, err = meter.Rewrite(m, meter.Options{RefillModule: "mortise:meter", RefillName: "refill", MaxTable: math.MaxUint32})
		if err != nil {
			return nil, err
		}
		w.moved += len(r.Data)
		if r.Start != "" {
			w.starts++
		}
	}
	mod, err := w.rt.InstantiateWithConfig(ctx, r.Wasm, wazero.NewModuleConfig().WithName(name))
	if err != nil {
		return nil, err
	}
	return mod, finish(ctx, mod, r)
}

func (w *world) call(ctx context.Context, c specCommand, args []uint64) ([]uint64, error) {
	mod := w.last
	if c.Action.Module != "" {
		mod = w.named[c.Action.Module]
	}
	if mod == nil {
		return nil, fmt.Errorf("no module")
	}
	if c.Action.Type == "get" {
		return []uint64{mod.ExportedGlobal(c.Action.Field).Get()}, nil
	}
	f := mod.ExportedFunction(c.Action.Field)
	if f == nil {
		return nil, fmt.Errorf("no function %q", c.Action.Field)
	}
	return f.Call(ctx, args...)
}

func parseArgs(values []specValue) ([]uint64, bool) {
	var out []uint64
	for _, v := range values {
		var text string
		if v.Type == "v128" || json.Unmarshal(v.Value, &text) != nil {
			lanes, ok := v128(v)
			if !ok {
				return nil, false
			}
			out = append(out, lanes...)
			continue
		}
		if text == "null" {
			out = append(out, 0)
			continue
		}
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return nil, false
		}
		if v.Type == "externref" {
			n++
		}
		out = append(out, n)
	}
	return out, true
}

func v128(v specValue) ([]uint64, bool) {
	var lanes []string
	if json.Unmarshal(v.Value, &lanes) != nil {
		return nil, false
	}
	width := 128 / len(lanes)
	var out [2]uint64
	for i, lane := range lanes {
		n, err := strconv.ParseUint(lane, 10, 64)
		if err != nil {
			s, err := strconv.ParseInt(lane, 10, 64)
			if err != nil {
				return nil, false
			}
			n = uint64(s)
		}
		if width < 64 {
			n &= 1<<width - 1
		}
		out[i*width/64] |= n << (i * width % 64)
	}
	return out[:], true
}

// firstLine is the part of an error that does not depend on function indices.
func firstLine(err error) string {
	if err == nil {
		return ""
	}
	line, _, _ := strings.Cut(err.Error(), "\n")
	return strings.TrimSuffix(line, " (recovered by wazero)")
}

// TestMeteredModulesBehaveAsBefore runs the WebAssembly spec suites on every
// module twice, as it is and rewritten, and compares each result and each trap.
func TestMeteredModulesBehaveAsBefore(t *testing.T) {
	t.Parallel()
	var compared, refused, moved, starts int
	for _, dir := range specDirs(t) {
		files, err := filepath.Glob(filepath.Join(dir, "*.json"))
		if err != nil || len(files) == 0 {
			testskip.Missing(t, "no spec suite in %s", dir)
		}
		spectest, err := os.ReadFile(filepath.Join(dir, "..", "..", "testdata", "spectest.wasm"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			c, r, w := runSpec(t, file, spectest)
			compared += c
			refused += r
			moved += w.moved
			starts += w.starts
		}
	}
	t.Logf("%d actions compared, %d invalid modules stayed invalid, %d segments and %d start functions were the host's",
		compared, refused, moved, starts)
	if compared < 40_000 || refused < 1_000 || moved < 200 || starts < 10 {
		t.Errorf("compared %d actions and %d invalid modules: the suites were not run", compared, refused)
	}
}

func runSpec(t *testing.T, file string, spectest []byte) (compared, refused int, metered *world) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var suite struct{ Commands []specCommand }
	if err := json.Unmarshal(data, &suite); err != nil {
		t.Fatal(err)
	}
	plain := newWorld(t, spectest, false)
	metered = newWorld(t, spectest, true)
	defer plain.rt.Close(t.Context())
	defer metered.rt.Close(t.Context())
	for _, c := range suite.Commands {
		at := fmt.Sprintf("%s:%d", filepath.Base(file), c.Line)
		switch c.Type {
		case "module", "assert_uninstantiable", "assert_unlinkable":
			loadBoth(t, at, file, c, plain, metered)
		case "register":
			registerBoth(t, file, c, suite.Commands, plain, metered)
		case "action", "assert_return", "assert_trap":
			if args, ok := parseArgs(c.Action.Args); ok && c.Action.Field != "" {
				compareCall(t, at, c, args, plain, metered)
				compared++
			}
		case "assert_invalid", "assert_malformed":
			if c.ModuleType == "binary" {
				stayInvalid(t, at, file, c, plain, metered)
				refused++
			}
		}
	}
	return compared, refused, metered
}

func loadBoth(t *testing.T, at, file string, c specCommand, plain, metered *world) {
	t.Helper()
	bin, err := os.ReadFile(filepath.Join(filepath.Dir(file), c.Filename))
	if err != nil {
		return
	}
	errPlain := plain.load(t.Context(), c.Name, bin)
	errMetered := metered.load(t.Context(), c.Name, bin)
	if errors.Is(errMetered, wasm.ErrUnsupported) {
		return // runs another way
	}
	absent := strings.Contains(firstLine(errMetered), "not instantiated") // what runs another way is not there
	if got, want := firstLine(errMetered), firstLine(errPlain); !strings.HasSuffix(want, got) && !absent {
		t.Errorf("%s: load: plain %q, metered %q", at, want, got)
	}
	if (errPlain == nil) != (errMetered == nil) {
		t.Errorf("%s: load: plain %v, metered %v", at, errPlain, errMetered)
	}
}

func registerBoth(t *testing.T, file string, c specCommand, all []specCommand, worlds ...*world) {
	t.Helper()
	name := ""
	for _, other := range all {
		if other.Line < c.Line && other.Type == "module" && (c.Name == "" || other.Name == c.Name) {
			name = other.Filename
		}
	}
	bin, err := os.ReadFile(filepath.Join(filepath.Dir(file), name))
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range worlds {
		mod, err := w.instantiate(t.Context(), c.As, bin)
		if errors.Is(err, wasm.ErrUnsupported) {
			return // runs another way
		}
		if err != nil {
			t.Fatalf("register %s: %v", c.As, err)
		}
		w.last = mod
		if c.Name != "" {
			w.named[c.Name] = mod
		}
	}
}

func compareCall(t *testing.T, at string, c specCommand, args []uint64, plain, metered *world) {
	t.Helper()
	want, errWant := plain.call(t.Context(), c, args)
	got, errGot := metered.call(t.Context(), c, args)
	if !slices.Equal(want, got) && !strings.Contains(c.Action.Field, "ref") {
		t.Errorf("%s: %s: plain %v, metered %v", at, c.Action.Field, want, got)
	}
	if firstLine(errWant) != firstLine(errGot) {
		t.Errorf("%s: %s: plain error %v, metered error %v", at, c.Action.Field, errWant, errGot)
	}
}

// stayInvalid checks that rewriting does not make an invalid module valid.
func stayInvalid(t *testing.T, at, file string, c specCommand, plain, metered *world) {
	t.Helper()
	bin, err := os.ReadFile(filepath.Join(filepath.Dir(file), c.Filename))
	if err != nil {
		return
	}
	if err := plain.load(t.Context(), "", bin); err == nil {
		return // wazero itself takes it
	}
	if err := metered.load(t.Context(), "", bin); err == nil {
		t.Errorf("%s: %s was invalid and became valid", at, c.Filename)
	}
}
