package meter_test

import (
	"errors"
	"testing"

	"github.com/tetratelabs/wazero"

	"github.com/mortise-dev/mortise/internal/wasm/meter"
)

// TestRewrite_locals has functions at the maximum of locals. The rewriter adds one
// more, which the engine must still take.
func TestRewrite_locals(t *testing.T) {
	t.Parallel()
	rt := wazero.NewRuntimeWithConfig(t.Context(), wazero.NewRuntimeConfigInterpreter().WithCoreFeatures(features()))
	t.Cleanup(func() { _ = rt.Close(t.Context()) })
	for _, n := range []int{0, 1, 49_998, 49_999, 50_000, 50_001} {
		bin := intruder(nil, sec(sCode, sized(1, leb(n), i32, end)))
		_, plain := rt.CompileModule(t.Context(), bin)
		r, err := rewrite(bin, options())
		if err == nil {
			_, err = rt.CompileModule(t.Context(), r.Wasm)
		}
		if plain != nil || (err != nil) != (n > 50_000) || err != nil && !errors.Is(err, meter.ErrLimit) {
			t.Errorf("%d locals: plain %v, metered %v", n, plain, err)
		}
	}
}
