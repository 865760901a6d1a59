package anthropic

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"

	sdk "github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"github.com/mortise-dev/mortise/abi"
)

// Efforts that the API does not define.
const (
	effortNone    = "none"
	effortMinimal = "minimal"
)

// minBudget is the smallest thinking budget that the API accepts, in tokens.
const minBudget = 1024

// traits are the properties of a model that follow from its name.
type traits struct {
	// version is 406 for 4.6, and 0 if unknown.
	version int
	// line is haiku, sonnet, opus, fable or mythos.
	line string
}

// traitsOf parses names such as claude-opus-4-6, claude-3-7-sonnet-20250219 and anthropic.claude-fable-5-1-v1:0.
func traitsOf(model string) traits {
	_, name, found := strings.Cut(strings.ToLower(model), "claude")
	if !found {
		return traits{}
	}
	var t traits
	parts := strings.FieldsFunc(name, func(c rune) bool { return strings.ContainsRune("-.@:_[]", c) })
	for i, part := range parts {
		major, err := strconv.Atoi(part)
		if err != nil || len(part) > 2 {
			continue
		}
		t.version = major * 100
		if i+1 < len(parts) && len(parts[i+1]) <= 2 {
			minor, _ := strconv.Atoi(parts[i+1])
			t.version += minor
		}
		break
	}
	for _, line := range []string{"haiku", "sonnet", "opus", "fable", "mythos"} {
		if strings.Contains(name, line) {
			t.line = line
		}
	}
	if t.line == "mythos" {
		t.version = cmp.Or(t.version, 407) // the preview
	}
	return t
}

// adaptive reports whether the model supports adaptive thinking.
func (t traits) adaptive() bool { return t.version >= 406 }

// byDefault reports whether the model thinks unless told otherwise.
func (t traits) byDefault() bool { return t.version >= 500 || t.line == "mythos" }

// off returns the configuration that turns thinking off, or false if the model always thinks.
func (t traits) off() (sdk.ThinkingConfigParamUnion, bool) {
	var out sdk.ThinkingConfigParamUnion
	switch {
	case t.line == "fable" || t.line == "mythos":
		return out, false
	case t.version < 505:
		out.OfDisabled = &sdk.ThinkingConfigDisabledParam{}
	case t.line == "sonnet":
		out.OfBetweenTools = &sdk.ThinkingConfigBetweenToolsParam{}
	default:
		return out, false
	}
	return out, true
}

// fixedSampling reports whether the model rejects temperature and top_p.
func (t traits) fixedSampling() bool { return t.version >= 407 }

// binds reports whether the model rejects thinking blocks after the conversation before them was edited.
func (t traits) binds() bool { return t.version >= 501 }

// override applies sampling, length and thinking.
func (q *request) override(o *abi.InferenceOverride, thinking bool) error {
	if o == nil {
		o = &abi.InferenceOverride{}
	}
	if o.MaxTokens != nil && *o.MaxTokens > 0 {
		q.params.MaxTokens = *o.MaxTokens
	}
	effort := ""
	if o.ReasoningEffort != nil {
		effort = strings.ToLower(*o.ReasoningEffort)
	}
	if _, ok := budgets()[effort]; !ok {
		return fmt.Errorf("the reasoning effort is %.40q, must be one of none, minimal, low, medium, high, xhigh, max", effort)
	}
	t := traitsOf(q.params.Model)
	switch {
	case t.adaptive() && (thinking || t.byDefault()):
		q.adapt(t, effort)
	case !t.adaptive() && thinking:
		q.budget(effort)
	}
	if t.fixedSampling() || q.params.Thinking.OfAdaptive != nil || q.params.Thinking.OfEnabled != nil {
		return nil
	}
	// Some models reject both at once.
	if o.Temperature != nil {
		q.params.Temperature = param.NewOpt(*o.Temperature)
	} else if o.TopP != nil {
		q.params.TopP = param.NewOpt(*o.TopP)
	}
	return nil
}

// adapt requests adaptive thinking, with summaries, which newer models omit by default.
func (q *request) adapt(t traits, effort string) {
	if !t.byDefault() && (effort == "" || effort == effortNone) {
		return
	}
	if effort == effortNone {
		if off, ok := t.off(); ok {
			q.params.Thinking = off
			return
		}
		effort = effortMinimal
	}
	adaptive := &sdk.ThinkingConfigAdaptiveParam{Display: sdk.ThinkingConfigAdaptiveDisplaySummarized}
	if t.binds() && q.thoughts {
		q.bound = true
		adaptive.SetExtraFields(map[string]any{"block_binding": map[string]string{"prefix_mismatch_behavior": "drop_block"}})
	}
	q.params.Thinking.OfAdaptive = adaptive
	switch {
	case effort == effortMinimal:
		effort = "low"
	case effort == "xhigh" && t.version == 406:
		effort = "high"
	}
	q.params.OutputConfig.Effort = sdk.OutputConfigEffort(effort)
}

// budget requests a thinking budget, of at most half the output limit.
func (q *request) budget(effort string) {
	if budget := min(budgets()[effort], q.params.MaxTokens/2); budget >= minBudget {
		q.params.Thinking = sdk.ThinkingConfigParamOfEnabled(budget)
	}
}

// budgets maps each effort to thinking tokens.
func budgets() map[string]int64 {
	return map[string]int64{
		"": 0, effortNone: 0, effortMinimal: minBudget, "low": 4096, "medium": 8192, "high": 16_384, "xhigh": 32_768, "max": 32_768,
	}
}
