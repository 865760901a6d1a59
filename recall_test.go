package mortise_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/mortise-dev/mortise"
	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/compaction/recall"
	"github.com/mortise-dev/mortise/llm"
)

// forgetful asks for the first message once it is offered the tool, and keeps what it was offered and answered.
type forgetful struct {
	offered []bool
	told    string
}

func (f *forgetful) Infer(_ context.Context, r llm.Request) (*abi.Response, error) {
	has := slices.ContainsFunc(r.Tools, func(t abi.Tool) bool { return t.Name == recall.Name })
	f.offered = append(f.offered, has)
	m := abi.Message{Role: abi.RoleAssistant, Content: []abi.ContentBlock{abi.Text("ok")}}
	switch last := r.Messages[len(r.Messages)-1]; {
	case last.Role == abi.RoleTool:
		f.told = last.Text()
	case has:
		m = abi.Message{Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "r1", Name: recall.Name, Arguments: map[string]any{"id": "m1"}}}}
	}
	return &abi.Response{Message: m}, nil
}

// TestRuntime_recall: from the first compaction on a model can read a message that the summary replaced.
func TestRuntime_recall(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		model := &forgetful{}
		r, err := mortise.New(t.Context(), mortise.Config{
			Agents: map[string]mortise.Agent{"a": {Model: model}},
			Compaction: &compaction.Config{
				Policy: compaction.Policy{
					WindowTokens: 100_000, ThresholdTokens: 1_000, KeepRecentTokens: 1, KeepRecentMessages: 1, MinRangeTokens: 1_024, SummaryTokens: 500, MinSurvival: -1,
				},
				Summarizer: late{}, Admitter: compaction.Rules{},
			},
		})
		must(t, err)
		must(t, r.Start(t.Context()))
		defer r.Close(context.Background())
		first := "The ferry to Borkum leaves at 9:40. " + strings.Repeat("filler ", 800)
		ask(t, r, first)
		for range 3 {
			time.Sleep(time.Minute)
			ask(t, r, "And then? "+strings.Repeat("filler ", 400))
			if model.told != "" {
				break
			}
		}
		if !strings.HasPrefix(model.told, "[m1 user]\n"+first[:36]) || model.offered[0] {
			t.Errorf("offered %v, and told %.120q", model.offered, model.told)
		}
	})
}
