package bundled_test

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/capability/model"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/summarizers"
	"github.com/mortise-dev/mortise/summarizers/bundled"
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

func load(t *testing.T, spec host.Spec) *host.Module {
	t.Helper()
	h, err := host.New(host.Config{CacheDir: cacheDir(), Limits: host.Limits{Timeout: 30 * time.Second}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := h.Close(context.WithoutCancel(t.Context())); err != nil {
			t.Error(err)
		}
	})
	m, err := h.Load(t.Context(), spec)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func request() *abi.SummarizeRequest {
	r := &abi.SummarizeRequest{ThreadID: "t", BudgetTokens: 300}
	for _, text := range []string{"Never rotate the key of mira-7.", "Then look at services/billing/retry.go: " + strings.Repeat("it fails each night. ", 50)} {
		r.Messages = append(r.Messages, abi.Message{ID: text[:4], Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(text)}})
	}
	return r
}

// reads asks a policy that masks: a file was read twice.
func reads() *abi.SummarizeRequest {
	r := &abi.SummarizeRequest{ThreadID: "t", BudgetTokens: 300, Masking: &abi.Masking{ViewTokens: 2000, GoalTokens: 1800}}
	for _, n := range []string{"1", "2"} {
		call := abi.ToolCall{ID: n, Name: "read", Arguments: map[string]any{"path": "/src/retry.go"}}
		r.Messages = append(r.Messages,
			abi.Message{ID: "call" + n, Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{call}},
			abi.Message{ID: "result" + n, Role: abi.RoleTool, ToolCallID: n, Content: []abi.ContentBlock{abi.Text(strings.Repeat("it fails each night. ", 50))}})
	}
	return r
}

// serves opens a policy and asks it. A scripted model replaces one that is granted.
func serves(t *testing.T, m *host.Module, use summarizers.Use, policy string, grants host.Grants) {
	t.Helper()
	p, err := summarizers.Open(t.Context(), m, summarizers.Config{Use: use, Policy: policy, Grants: grants})
	if err != nil {
		t.Fatal(err)
	}
	if use == summarizers.UseAdmit {
		tokens := int64(190_000)
		d, err := p.Admit(t.Context(), &abi.AdmitRequest{TokensBefore: &tokens, RangeTokens: 170_000, WindowTokens: 200_000, MaxAttempts: 9})
		if err != nil || !d.Allowed || d.Detail == "" {
			t.Errorf("%s: %+v, %v", policy, d, err)
		}
		return
	}
	if policy == "gc" {
		s, err := p.Summarize(t.Context(), reads())
		if err != nil || len(s.Masks) != 1 || s.Masks[0].MessageID != "result1" || s.Masks[0].Reason != abi.MaskSuperseded || s.Masks[0].By != "result2" {
			t.Errorf("%s: %+v, %v", policy, s, err)
		}
		return
	}
	s, err := p.Summarize(t.Context(), request())
	if err != nil || !strings.Contains(s.Text, "mira-7") || len(s.Text) > 300*4 {
		t.Errorf("%s: %+v, %v", policy, s, err)
	}
}

// writer is a model that keeps one thing in mind.
func writer() host.Grants {
	return host.Grants{Capabilities: []host.Capability{&model.Grant{Roles: map[string]model.Role{"summarizer": {
		WindowTokens: 8000,
		Answer: func(_ context.Context, q model.Question) (model.Answer, error) {
			if !strings.Contains(q.Prompt, "<message from=\"user\">\nNever rotate the key of mira-7.\n</message>") {
				return model.Answer{Refused: true}, nil
			}
			return model.Answer{Text: "<summary>\n## Constraints\n- Never rotate the key of mira-7.\n</summary>"}, nil
		},
	}}}}}
}

// TestPolicies asks each of the bundled policies, with a model and without.
func TestPolicies(t *testing.T) {
	t.Parallel()
	spec, err := bundled.Admission()
	if err != nil {
		t.Fatal(err)
	}
	admission := load(t, spec)
	for _, policy := range []string{"", "quota", "threshold", "cost"} {
		serves(t, admission, summarizers.UseAdmit, policy, host.Grants{})
	}
	if spec, err = bundled.Summarizers(); err != nil {
		t.Fatal(err)
	}
	without := load(t, spec)
	for _, policy := range []string{"", "ledger", "gc"} {
		serves(t, without, summarizers.UseSummarize, policy, host.Grants{})
	}
	p, err := summarizers.Open(t.Context(), without, summarizers.Config{Use: summarizers.UseSummarize, Policy: "anchored"})
	if err != nil {
		t.Fatal(err)
	}
	if _, notes := p.Granted(); len(notes) != 1 || !strings.Contains(notes[0], "asks for model") || !strings.Contains(notes[0], "optional and not granted") {
		t.Errorf("notes %q", notes)
	}
	if _, err := p.Summarize(t.Context(), request()); err == nil || !strings.Contains(err.Error(), "no role of a model is granted") {
		t.Errorf("error %v", err)
	}
	spec.Grants = writer()
	with := load(t, spec)
	for _, policy := range []string{"anchored", "ledger"} {
		serves(t, with, summarizers.UseSummarize, policy, spec.Grants)
	}
	if s := with.Stats(); s.Uses["model"] != 1 || s.Uses["model_tokens"] == 0 || s.Denied != 0 {
		t.Errorf("%+v", s)
	}
	for policy, needs := range map[string]bool{"anchored": true, "ledger": false, "": false} {
		if bundled.NeedsModel(policy) != needs {
			t.Errorf("NeedsModel(%q) is %v", policy, !needs)
		}
	}
}

// TestEachBuildsAlone builds a guest for each policy, as the starting point for a policy of one's own,
// and asks it.
func TestEachBuildsAlone(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		testskip.Skip(t, "builds a guest for each policy; run without -short")
	}
	for _, kind := range []struct {
		use  summarizers.Use
		dir  string
		list []string
	}{
		{summarizers.UseSummarize, "summarizers", []string{"gc", "anchored", "ledger"}},
		{summarizers.UseAdmit, "admission", []string{"quota", "threshold", "cost"}},
	} {
		root := filepath.Join("..", "modules", kind.dir)
		folders, err := filepath.Glob(filepath.Join(root, "cmd", "*"))
		if err != nil || len(folders) != len(kind.list) {
			t.Fatalf("%s has %q, %v", root, folders, err)
		}
		for _, policy := range kind.list {
			t.Run(policy, func(t *testing.T) {
				t.Parallel()
				spec := host.Spec{Wasm: build(t, root, "./cmd/"+policy), Name: policy}
				if policy == "anchored" {
					spec.Grants = writer()
				}
				serves(t, load(t, spec), kind.use, policy, spec.Grants)
			})
		}
	}
}

// build builds a guest as guestbuild does.
func build(t *testing.T, dir, pkg string) []byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "guest.wasm")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildmode=c-shared", "-trimpath", "-buildvcs=false", "-ldflags=-s -w -buildid=", "-o", file, pkg)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOOS=wasip1", "GOARCH=wasm", "GOWASM=", "GOFLAGS=", "GOEXPERIMENT=", "GOWORK=off", "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", pkg, err, out)
	}
	wasm, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return wasm
}

// TestOpen_refuses: a policy that cannot work is refused, by its name.
func TestOpen_refuses(t *testing.T) {
	t.Parallel()
	h, err := host.New(host.Config{CacheDir: cacheDir()})
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close(t.Context())
	for policy, want := range map[string]string{"anchored": `policy "anchored" needs a model`, "nothing": "nothing"} {
		if _, err := bundled.Open(t.Context(), h, policy); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", policy, err)
		}
	}
}
