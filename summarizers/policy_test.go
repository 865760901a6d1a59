package summarizers_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/summarizers"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cacheDir keeps compiled modules from one run of the tests to the next.
func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(dir, "mortise-test")
}

// newHost makes a host with the cache of the tests.
func newHost(t *testing.T, engine string) *host.Host {
	t.Helper()
	h, err := host.New(host.Config{Engine: hosttest.Engine(engine), CacheDir: cacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	return h
}

// load loads a bundled module on an engine.
func load(t *testing.T, engine, name string) *host.Module {
	t.Helper()
	m, err := newHost(t, engine).Load(t.Context(), host.Spec{Path: filepath.Join("..", "testdata", "guests", name+".wasm"), Limits: host.Limits{Timeout: time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func conversation() []abi.Message {
	var out []abi.Message
	say := func(role abi.Role, text string) {
		out = append(out, abi.Message{ID: fmt.Sprintf("m%d", len(out)), Role: role, Content: []abi.ContentBlock{abi.Text(text)}})
	}
	say(abi.RoleUser, "Please find out why the nightly job fails. The deploy key belongs to user mira-7 and must never be rotated on Fridays.")
	for i := range 30 {
		say(abi.RoleAssistant, fmt.Sprintf("I look at step %d of the pipeline and compare it with the one before.", i))
		say(abi.RoleUser, "Go on.")
	}
	say(abi.RoleAssistant, "The error is in services/billing/retry.go: panic: send on closed channel. I decided to close the channel after the workers are done.")
	return out
}

func TestLedgerKeepsWhatMatters(t *testing.T) {
	t.Parallel()
	for _, engine := range []string{hosttest.Native, hosttest.Extism} {
		t.Run(engine, func(t *testing.T) {
			t.Parallel()
			p, err := summarizers.Open(t.Context(), load(t, engine, "summarizers"), summarizers.Config{Use: summarizers.UseSummarize, Policy: "ledger"})
			if err != nil {
				t.Fatal(err)
			}
			previous := "## Constraints & instructions\n- The budget is 4,200 euros.\n"
			s, err := p.Summarize(t.Context(), &abi.SummarizeRequest{
				ThreadID: "t", Messages: conversation(), PreviousSummary: &previous, BudgetTokens: 400,
				ModifiedFiles: []string{"services/billing/retry.go"},
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, want := range []string{"mira-7", "services/billing/retry.go", "send on closed channel", "4,200 euros"} {
				if !strings.Contains(s.Text, want) {
					t.Errorf("the summary lost %q:\n%s", want, s.Text)
				}
			}
			if len(s.Text) > 400*4 {
				t.Errorf("%d bytes for a budget of 400 tokens", len(s.Text))
			}
			if p.Name() != "summarizers/ledger" {
				t.Errorf("name %q", p.Name())
			}
		})
	}
}

func TestQuotaDecides(t *testing.T) {
	t.Parallel()
	p, err := summarizers.Open(t.Context(), load(t, hosttest.Native, "admission"), summarizers.Config{
		Use: summarizers.UseAdmit, Policy: "quota", Config: map[string]any{"max_attempts": int64(3)},
	})
	if err != nil {
		t.Fatal(err)
	}
	tokens, available := int64(180_000), int64(256<<20)
	for want, r := range map[string]*abi.AdmitRequest{
		abi.ReasonAllowed:        {TokensBefore: &tokens, MaxAttempts: 100},
		abi.ReasonAttemptLimit:   {TokensBefore: &tokens, MaxAttempts: 100, AttemptCount: 3},
		abi.ReasonNoPreparation:  {MaxAttempts: 100},
		abi.ReasonMemoryPressure: {TokensBefore: &tokens, MaxAttempts: 100, Signals: abi.Signals{Memory: &abi.MemorySignal{AvailableBytes: &available, RequiredHeadroomBytes: 512 << 20}}},
		abi.ReasonPending:        {TokensBefore: &tokens, MaxAttempts: 100, Pending: true, AttemptCount: 9},
	} {
		d, err := p.Admit(t.Context(), r)
		if err != nil || d.Reason != want || d.Allowed != (want == abi.ReasonAllowed) || d.Detail == "" {
			t.Errorf("%s: %+v, %v", want, d, err)
		}
	}
}

func TestOpenRefuses(t *testing.T) {
	t.Parallel()
	m := load(t, hosttest.Native, "admission")
	for says, cfg := range map[string]summarizers.Config{
		`Config.Use "": must be "summarize" or "admit"`:          {},
		`has no export "summarize", so it cannot serve here`:     {Use: summarizers.UseSummarize},
		`module "admission": knows no policy "x"; it knows `:     {Use: summarizers.UseAdmit, Policy: "x"},
		`refuses its config: at '': additional properties 'zzz'`: {Use: summarizers.UseAdmit, Config: map[string]any{"zzz": true}},
	} {
		if _, err := summarizers.Open(t.Context(), m, cfg); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("error %v does not say %q", err, says)
		}
	}
}

func TestErrorsOfTheModulePassThrough(t *testing.T) {
	t.Parallel()
	m := load(t, hosttest.Native, "summarizers")
	p, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: summarizers.UseSummarize})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := p.Summarize(ctx, &abi.SummarizeRequest{Messages: conversation(), BudgetTokens: 100}); !errors.Is(err, context.Canceled) {
		t.Errorf("error %v, want the context's", err)
	}
	if err := m.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	if _, err := p.Summarize(t.Context(), &abi.SummarizeRequest{}); !errors.Is(err, host.ErrClosed) {
		t.Errorf("error %v, want ErrClosed", err)
	}
}
