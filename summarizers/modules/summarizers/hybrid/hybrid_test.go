//go:build !wasip1

package hybrid_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/sdk/go/capability"
	"github.com/mortise-dev/mortise/sdk/go/model"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/hybrid"
)

func request(config map[string]any) *mortise.SummarizeRequest {
	return &mortise.SummarizeRequest{BudgetTokens: 400, Config: config, Messages: []mortise.Message{
		{ID: "u", Role: mortise.RoleUser, Content: []mortise.ContentBlock{mortise.Text("Find the fault in services/billing/retry.go, mira-7 waits.")}},
		{ID: "t", Role: mortise.RoleTool, Content: []mortise.ContentBlock{mortise.Text(strings.Repeat("noise of a build\n", 500) + "panic: send on closed channel")}},
	}}
}

func TestWithoutModel(t *testing.T) {
	t.Parallel()
	s, err := hybrid.Summarize(request(map[string]any{"role": "nobody"}))
	if err != nil {
		t.Fatal(err)
	}
	if s.Policy != "hybrid/ledger" || s.FromID != "u" || s.ToID != "t" || !strings.Contains(s.Text, "services/billing/retry.go") {
		t.Errorf("%+v", s)
	}
}

func TestWithModel(t *testing.T) {
	t.Parallel()
	info := model.RoleInfo{WindowTokens: 10_000, AnswerTokens: 500, LeftTokens: 1 << 30, LeftQuestions: 2}
	fails := false
	t.Cleanup(model.ProvideRole(t.Name(), model.Role{Info: info, Answer: func(q model.Question) (string, error) {
		if strings.Count(q.Prompt, "noise") != 1 || !strings.Contains(q.Prompt, "(masked: 8,529 bytes)") || !strings.Contains(q.Prompt, "panic: send") {
			t.Errorf("the output is not masked:\n%s", q.Prompt)
		}
		if fails {
			return "", &capability.Error{Code: capability.Timeout}
		}
		return "<summary>\n## Next\n- Fix it.\n</summary>", nil
	}}))
	config := map[string]any{"role": t.Name()}
	s, err := hybrid.Summarize(request(config))
	if err != nil || s.Policy != "hybrid/anchored" || s.Text != "## Next\n- Fix it." {
		t.Errorf("%+v, %v", s, err)
	}
	fails = true // then the host decides what to do
	if _, err := hybrid.Summarize(request(config)); !errors.Is(err, capability.Timeout) {
		t.Errorf("error %v", err)
	}
}

func Example() {
	s, err := hybrid.Summarize(request(map[string]any{"role": "nobody"}))
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(s.Policy)
	// Output: hybrid/ledger
}
