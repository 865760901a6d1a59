package summarizers_test

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/summarizers"
)

// fixed is a summarizer that speaks JSON and says the same of everything.
func fixed(t *testing.T, replace ...string) host.Spec {
	t.Helper()
	b, err := os.ReadFile(filepath.Join("..", "internal", "cli", "testdata", "fixed.wasm"))
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i < len(replace); i += 2 {
		if len(replace[i]) != len(replace[i+1]) || !bytes.Contains(b, []byte(replace[i])) {
			t.Fatalf("%q cannot be replaced by %q", replace[i], replace[i+1])
		}
		b = bytes.ReplaceAll(b, []byte(replace[i]), []byte(replace[i+1]))
	}
	return host.Spec{Wasm: b}
}

// TestSwapPolicy puts a summarizer that speaks JSON in the place of one that speaks
// MessagePack while requests are in flight.
func TestSwapPolicy(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{hosttest.Native, hosttest.Extism} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			m := load(t, engine, "summarizers")
			p, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: summarizers.UseSummarize})
			if err != nil {
				t.Fatal(err)
			}
			var wg sync.WaitGroup
			var stop atomic.Bool
			for range 2 {
				wg.Go(func() {
					for !stop.Load() {
						if s, err := p.Summarize(t.Context(), &abi.SummarizeRequest{Messages: conversation(), BudgetTokens: 200}); err != nil || s.Text == "" {
							t.Errorf("summary %+v, error %v", s, err)
							return
						}
					}
				})
			}
			if _, err := p.Swap(t.Context(), fixed(t), summarizers.SwapOptions{Untried: true}); err != nil {
				t.Error(err)
			}
			stop.Store(true)
			wg.Wait()
			s, err := p.Summarize(t.Context(), &abi.SummarizeRequest{Messages: conversation(), BudgetTokens: 200})
			if err != nil || !strings.HasPrefix(s.Text, "Work was done on a repository.") {
				t.Errorf("summary %+v, error %v", s, err)
			}
			if p.Name() != "fixed" || p.Info().Generation != 2 {
				t.Errorf("%s, generation %d", p.Name(), p.Info().Generation)
			}
		})
	}
}

func TestSwapPolicyRefuses(t *testing.T) {
	t.Parallel()
	p, err := summarizers.Open(t.Context(), load(t, hosttest.Native, "summarizers"), summarizers.Config{Use: summarizers.UseSummarize, Policy: "ledger"})
	if err != nil {
		t.Fatal(err)
	}
	for says, spec := range map[string]host.Spec{
		`knows no policy "ledger"`:    fixed(t),
		"speaks ABI 8 to 8":           fixed(t, `"min":1,"max":1`, `"min":8,"max":8`),
		`has no export "summarize"`:   {Path: filepath.Join("..", "testdata", "guests", "admission.wasm")},
		"was not found; check":        {Path: "gone.wasm"},
		`Spec.Name is "other"; leave`: {Path: "gone.wasm", Name: "other"},
	} {
		if _, err := p.Swap(t.Context(), spec, summarizers.SwapOptions{}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
	if _, err := p.Summarize(t.Context(), &abi.SummarizeRequest{Messages: conversation(), BudgetTokens: 200}); err != nil || p.Info().Generation != 1 {
		t.Errorf("the one in use does not continue: %v", err)
	}
}

// TestModuleSwappedPastThePolicy: the module's loader may swap it; the policy
// finds out, and reports when the binary does not serve it.
func TestModuleSwappedPastThePolicy(t *testing.T) {
	t.Parallel()
	m := load(t, hosttest.Native, "summarizers")
	p, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: summarizers.UseSummarize})
	if err != nil {
		t.Fatal(err)
	}
	request := &abi.SummarizeRequest{Messages: conversation(), BudgetTokens: 200}
	admission := host.Spec{Path: filepath.Join("..", "testdata", "guests", "admission.wasm")}
	if _, err := m.Swap(t.Context(), admission, host.SwapOptions{}); err != nil { // summarize has not been called yet
		t.Fatal(err)
	}
	if _, err := p.Summarize(t.Context(), request); err == nil || !strings.Contains(err.Error(), `has no export "summarize"`) {
		t.Errorf("error %v", err)
	}
	if _, err := m.Swap(t.Context(), fixed(t), host.SwapOptions{}); err != nil {
		t.Fatal(err)
	}
	if s, err := p.Summarize(t.Context(), request); err != nil || !strings.HasPrefix(s.Text, "Work was done") {
		t.Errorf("summary %+v, error %v", s, err)
	}
	if _, notes := p.Granted(); len(notes) != 1 || !strings.Contains(notes[0], "swapped past its owner") {
		t.Errorf("notes %q", notes)
	}
	if _, err := m.Swap(t.Context(), admission, host.SwapOptions{}); !errors.Is(err, host.ErrExport) {
		t.Errorf("error %v, want ErrExport", err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Summarize(t.Context(), request); !errors.Is(err, host.ErrClosed) {
		t.Errorf("error %v", err)
	}
}

// TestPolicyThatAsks: a policy that asks for something loads with it, and is refused
// without it, at first and at a swap.
func TestPolicyThatAsks(t *testing.T) {
	t.Parallel()
	asking := fixed(t)
	description := `{"name":"asking","version":"1.0.0","abi":{"min":1,"max":1},"capabilities":[{"name":"clock","reason":"Dates."}]}`
	section := append([]byte{byte(len(abi.ManifestSection))}, abi.ManifestSection+description...)
	asking.Wasm = append(append(asking.Wasm, 0), append([]byte{byte(len(section)) | 0x80, byte(len(section) >> 7)}, section...)...)
	const says = `plugin "asking" asks for clock (it says: "Dates."); to let it, write grants: {clock: true}`

	m := load(t, hosttest.Native, "summarizers")
	p, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: summarizers.UseSummarize})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := p.Swap(t.Context(), asking, summarizers.SwapOptions{Untried: true}); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("error %v", err)
	}
	asking.Grants.Clock = true
	if _, err := p.Swap(t.Context(), asking, summarizers.SwapOptions{Untried: true}); err != nil {
		t.Fatal(err)
	}
	granted, notes := p.Granted()
	if strings.Join(granted, ",") != "clock" || len(notes) != 0 {
		t.Errorf("granted %q, notes %q", granted, notes)
	}
	// What stands in Config.Grants is what was given to Load.
	if _, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: summarizers.UseSummarize}); err == nil || !strings.Contains(err.Error(), says) {
		t.Errorf("error %v", err)
	}
	if _, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: summarizers.UseSummarize, Grants: asking.Grants}); err != nil {
		t.Error(err)
	}
}
