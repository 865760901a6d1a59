package host_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// linkSpec links three modules that know each other, in a wrong order.
func linkSpec(limits host.Limits) host.Spec {
	return host.Spec{Path: wat("link_main"), Limits: limits, Links: []host.Link{
		{Name: "middle", Path: wat("link_middle")}, {Name: "base", Path: wat("link_base")},
	}}
}

// TestLinks_peer runs go-sdk's own pair of modules.
func TestLinks_peer(t *testing.T) {
	t.Parallel()
	onEngines(t, func(t *testing.T, e string) {
		t.Helper()
		m := load(t, e, host.Spec{Path: peer(t, "main"), Links: []host.Link{{Name: "lib", Path: peer(t, "lib")}}})
		for range 3 {
			call(t, m, "run_test", "benjamin", "Hello, BENJAMIN")
		}
		links := m.Info().Links
		if len(links) != 1 || links[0].Name != "lib" || len(links[0].SHA256) != 64 || links[0].Size == 0 {
			t.Errorf("%+v", links)
		}
	})
}

// TestLinks_fresh counts in the memory and the globals of a linked module: each call
// finds it as after its start function and _initialize, which ran once.
func TestLinks_fresh(t *testing.T) {
	t.Parallel()
	m := load(t, hosttest.Native, linkSpec(host.Limits{Instances: 1}))
	for range 3 {
		var refused *host.GuestError
		if _, err := m.Call(t.Context(), "fresh", nil); !errors.As(err, &refused) || refused.Code != 411 {
			t.Errorf("%v, want code 411", err)
		}
		call(t, m, "answer", "", "base")
	}
	if s := m.Stats(); s.Calls != 6 || s.Replaced != 6 || s.Traps != 0 {
		t.Errorf("%+v", s)
	}
}

// TestLinks_traps stops what a linked module does as if the main one did it.
func TestLinks_traps(t *testing.T) {
	t.Parallel()
	modules := map[host.Reason]*host.Module{
		host.TrapDeadline: load(t, hosttest.Native, linkSpec(host.Limits{Timeout: 50 * time.Millisecond})),
		host.TrapFault:    load(t, hosttest.Native, linkSpec(host.Limits{Timeout: time.Minute})),
	}
	for export, kind := range map[string]host.Reason{
		"spin": host.TrapDeadline, "fib": host.TrapDeadline, "break": host.TrapFault, "outside": host.TrapFault,
	} {
		begin := time.Now()
		_, err := modules[kind].Call(t.Context(), export, nil)
		_ = wantTrap(t, err, kind)
		if kind == host.TrapDeadline && !errors.Is(err, context.DeadlineExceeded) || time.Since(begin) > 10*time.Second {
			t.Errorf("%s: %v after %v", export, err, time.Since(begin))
		}
	}
}

// TestLinks_fuel counts what two modules use together, and gives exactly that, and
// one unit less. A round costs 7 and a call of rounds 2 around it; a round in main
// costs 9 and its function 5.
func TestLinks_fuel(t *testing.T) {
	t.Parallel()
	const cost = 100*(100*7+2+9) + 5
	h := newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Native)})
	for _, limit := range []int64{0, cost, cost - 1, cost / 2, 3} {
		m, err := h.Load(t.Context(), linkSpec(host.Limits{Timeout: time.Minute, Fuel: limit}))
		if limit == 3 { // not enough for the start functions
			if err == nil || !strings.Contains(err.Error(), `link "base": used up its 3 units of fuel`) {
				t.Errorf("%v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			used, err := fuelOf(t.Context(), m, "work", nil)
			if enough := limit == 0 || limit == cost; enough && (err != nil || used != cost) {
				t.Errorf("limit %d: used %d, %v, want %d", limit, used, err, cost)
			} else if !enough {
				_ = wantTrap(t, err, host.TrapFuel)
				if used <= limit || used > limit+100 {
					t.Errorf("limit %d: stopped at %d", limit, used)
				}
			}
		}
	}
}

// TestLinks_refused names the link and the hint.
func TestLinks_refused(t *testing.T) {
	t.Parallel()
	// importer imports one thing of another module.
	importer := func(module, name string, kind ...any) []byte {
		return wasmOf(sec(sType, fn(nil, nil), fn(enc(i32), nil)), sec(sImport, enc(sized(module), sized(name), enc(kind...))),
			sec(sMemory, enc(0, 1)), sec(sExport, export("memory", 2, 0)))
	}
	base := host.Link{Name: "base", Path: wat("link_base")}
	circle := []host.Link{
		{Name: "a", Wasm: importer("b", "f", 0, 0)}, {Name: "b", Wasm: importer("c", "f", 0, 0)}, {Name: "c", Wasm: importer("a", "f", 0, 0)},
	}
	for n := range circle { // each exports what it imports
		circle[n].Wasm = wasmOf(sec(sType, fn(nil, nil)), sec(sImport, enc(sized(circle[(n+1)%3].Name), sized("f"), 0, 0)), sec(sExport, export("f", 0, 0)))
	}
	many := make([]host.Link, 17)
	for n := range many {
		many[n] = host.Link{Name: fmt.Sprint("m", n), Path: wat("link_base")}
	}
	for _, c := range []struct {
		want  string
		main  []byte
		links []host.Link
		kind  error
	}{
		{`imports lib.f, which is not offered; import only from extism:host/env, mortise:host/1 and wasi_snapshot_preview1, link a module of that name (Spec.Links), or grant the function (Grants.Functions)`, importer("lib", "f", 0, 0), []host.Link{base}, host.ErrImport},
		{`imports base.f, which the linked module does not export; link a version of it that does`, importer("base", "f", 0, 0), []host.Link{base}, host.ErrImport},
		{`imports base.answer as (i32) -> (), but it is () -> (); build both against the same version`, importer("base", "answer", 0, 1), []host.Link{base}, host.ErrImport},
		{`imports the memory base.memory, but only functions can be linked`, importer("base", "memory", 2, 0, 1), []host.Link{base}, host.ErrImport},
		{`imports the func a.memory, but it is a memory`, importer("a", "memory", 0, 0), []host.Link{{Name: "a", Wasm: importer("base", "answer", 0, 0)}, base}, host.ErrImport},
		{`has links that import from each other in a circle: "a" -> "b" -> "c" -> "a"; move what they share into a module of its own`, importer("a", "f", 0, 0), circle, host.ErrImport},
		{`in a circle: "a" -> "a"`, importer("a", "f", 0, 0), []host.Link{{Name: "a", Wasm: wasmOf(sec(sType, fn(nil, nil)), sec(sImport, enc(sized("a"), sized("f"), 0, 0)), sec(sExport, export("f", 0, 0)))}}, host.ErrImport},
		{`has the link "a", which imports missing.f, which is not offered`, nil, []host.Link{{Name: "a", Wasm: importer("missing", "f", 0, 0)}}, host.ErrImport},
		{`has a link without a name`, nil, []host.Link{{Path: wat("link_base")}}, host.ErrInvalid},
		{`has two links named "base"`, nil, []host.Link{base, base}, host.ErrInvalid},
		{`has a link named "extism:host/env", which the host itself offers; give it another name`, nil, []host.Link{{Name: "extism:host/env", Path: wat("link_base")}}, host.ErrInvalid},
		{`has a link named "mortise:native"`, nil, []host.Link{{Name: "mortise:native", Path: wat("link_base")}}, host.ErrInvalid},
		{`has a link named "wasi_snapshot_preview1"`, nil, []host.Link{{Name: "wasi_snapshot_preview1", Path: wat("link_base")}}, host.ErrInvalid},
		{`has a link named "main"`, nil, []host.Link{{Name: "main", Path: wat("link_base")}}, host.ErrInvalid},
		{`has the link "a\\x1b", which has neither Path nor Wasm`, nil, []host.Link{{Name: "a\x1b"}}, host.ErrInvalid},
		{`has the link "a", which was not found`, nil, []host.Link{{Name: "a", Path: filepath.Join(t.TempDir(), "none.wasm")}}, host.ErrNotFound},
		{`has the link "a", which has SHA-256 `, nil, []host.Link{{Name: "a", Path: wat("link_base"), SHA256: strings.Repeat("0", 64)}}, host.ErrChecksum},
		{`has the link "a", which is not WebAssembly`, nil, []host.Link{{Name: "a", Wasm: []byte("text")}}, host.ErrNotCore},
		{`has the link "a", which needs 2000 pages of memory`, nil, []host.Link{{Name: "a", Wasm: wasmOf(sec(sMemory, enc(0, leb(2000))))}}, host.ErrLimit},
		{`has 17 links, and 16 are allowed`, nil, many, host.ErrLimit},
		{`link "a": `, nil, []host.Link{{Name: "a", Wasm: watBytes(t, "invalid_code")}}, host.ErrInvalid},
		{`did not start: link "a": unreachable at .broken()`, nil, []host.Link{{Name: "a", Wasm: watBytes(t, "trap_start")}}, nil},
	} {
		if c.main == nil {
			c.main = watBytes(t, "echo")
		}
		_, err := newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Native)}).Load(t.Context(), host.Spec{Name: "main", Wasm: c.main, Links: c.links})
		var bad *host.LoadError
		if !errors.As(err, &bad) || !strings.Contains(err.Error(), c.want) || c.kind != nil && !errors.Is(err, c.kind) {
			t.Errorf("got  %v\nwant %s", err, c.want)
		}
	}
	both := host.Spec{Path: wat("echo"), Links: []host.Link{{Name: "mine", Path: wat("link_base")}}, Grants: host.Grants{Functions: mine()}}
	if _, err := newHost(t, host.Config{}).Load(t.Context(), both); !errors.Is(err, host.ErrInvalid) || !strings.Contains(err.Error(), `has a link named "mine", and Grants.Functions offers`) {
		t.Errorf("a link and functions of one name: %v", err)
	}
	_, err := newHost(t, host.Config{Engine: hosttest.Engine(hosttest.Extism)}).Load(t.Context(), linkSpec(host.Limits{}))
	const want = `the link "base" imports from mortise:host/1, which only the main module can on this engine`
	if !errors.Is(err, host.ErrInvalid) || !strings.Contains(err.Error(), want) {
		t.Errorf("got  %v\nwant %s", err, want)
	}
}
