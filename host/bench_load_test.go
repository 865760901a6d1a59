package host_test

import (
	"context"
	"os"
	"testing"

	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/http"
	logcap "github.com/mortise-dev/mortise/host/capability/log"
	"github.com/mortise-dev/mortise/host/hosttest"
)

// BenchmarkLoad compares the processor time that each engine takes to load a module without a cache: to check and
// compile it, and to make its first instance. The metrics are medians; native/extism-cpu is to stay below 2.
func BenchmarkLoad(b *testing.B) {
	for _, m := range []struct{ name, path string }{
		{"c_12k", "testdata/bench/c/hook.wasm"},
		{"pdk_214k", peer(b, "log")},
		{"pdk_465k", peer(b, "var")},
		{"pdk_664k", peer(b, "http")},
		{"go_2138k", peer(b, "count_vowels_std")},
	} {
		wasm, err := os.ReadFile(m.path)
		if err != nil {
			b.Fatal(err)
		}
		b.Run(m.name, func(b *testing.B) {
			costs := compete(b, 1, loadAnew(b, hosttest.Native, wasm), loadAnew(b, hosttest.Extism, wasm))
			report(b, []string{"native", "extism"}, costs)
			ratio(b, "native/extism", costs[0], costs[1])
		})
	}
}

// loadAnew loads a module on a host of its own, which has no cache.
func loadAnew(b *testing.B, engine string, wasm []byte) contestant {
	b.Helper()
	grants := host.Grants{Capabilities: []host.Capability{&http.Grant{Hosts: []string{"example.com"}}, logcap.Grant{}}}
	return func() {
		ctx := context.Background()
		h, err := host.New(host.Config{Engine: hosttest.Engine(engine)})
		if err != nil {
			b.Fatal(err)
		}
		if _, err := h.Load(ctx, host.Spec{Name: "load", Wasm: wasm, Grants: grants}); err != nil {
			b.Fatal(err)
		}
		if err := h.Close(ctx); err != nil {
			b.Fatal(err)
		}
	}
}
