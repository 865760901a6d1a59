package llm_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm"
)

func TestCost(t *testing.T) {
	t.Parallel()
	own := llm.Prices{"local": {Input: 1, Output: 2}, "local-big": {Input: 4, Output: 8, CacheRead: 0.4}, "gpt-5": {Input: 1.25}, "me/gpt-5": {Input: 9}}
	million := int64(1_000_000)
	for _, c := range []struct {
		model string
		u     abi.Usage
		want  float64 // -1 for none
	}{
		{"local", abi.Usage{PromptTokens: million, CompletionTokens: million}, 3},
		{"local", abi.Usage{PromptTokens: million, CacheReadTokens: million}, 1}, // has no price of its own
		{"local-big-2025-01-01", abi.Usage{PromptTokens: million, CacheReadTokens: million / 2, CacheCreationTokens: million / 4}, 0.2 + 1 + 1},
		{"local-big", abi.Usage{PromptTokens: 10, CacheReadTokens: million}, 0.4}, // a provider that counts otherwise
		{"local-big", abi.Usage{}, 0},
		{"localhost", abi.Usage{PromptTokens: 1}, -1},
		{"loc", abi.Usage{PromptTokens: 1}, -1},
		{"", abi.Usage{PromptTokens: 1}, -1},
		{"gpt-5-2025-08-07", abi.Usage{PromptTokens: million}, 1.25},
		{"gpt-5-codex", abi.Usage{PromptTokens: million}, 1.25},
		{"gpt-5.1", abi.Usage{PromptTokens: million}, -1},
		{"gpt-5-1", abi.Usage{PromptTokens: million}, -1},
		{"openai/gpt-5", abi.Usage{PromptTokens: million}, 1.25},
		{"me/gpt-5", abi.Usage{PromptTokens: million}, 9},
	} {
		got, ok := own.Cost(c.model, c.u)
		if ok != (c.want >= 0) || ok && math.Abs(got-c.want) > 1e-9 {
			t.Errorf("%q %+v: got %v, %v, want %v", c.model, c.u, got, ok, c.want)
		}
	}
}

// TestLongPrompt: the whole of a request is dearer beyond a length.
func TestLongPrompt(t *testing.T) {
	t.Parallel()
	p := llm.DefaultPrices()
	short, _ := p.Cost("claude-haiku-5-5", abi.Usage{PromptTokens: 100_000, CompletionTokens: 1000})
	long, _ := p.Cost("claude-haiku-5-5", abi.Usage{PromptTokens: 100_001, CompletionTokens: 1000})
	if math.Abs(short-0.0105) > 1e-9 || math.Abs(long-0.0525005) > 1e-9 {
		t.Errorf("short %v, long %v", short, long)
	}
}

func TestDefaultPrices(t *testing.T) {
	t.Parallel()
	p := llm.DefaultPrices()
	for name, price := range p {
		if price.Input <= 0 || price.Output < 4*price.Input-1e-9 || price.Output > 10*price.Input {
			t.Errorf("%s: input %v, output %v", name, price.Input, price.Output)
		}
		if price.CacheRead > price.Input/2 || price.CacheWrite != 0 && math.Abs(price.CacheWrite/price.Input-1.25) > 1e-9 {
			t.Errorf("%s: cache %v and %v", name, price.CacheRead, price.CacheWrite)
		}
		if strings.HasPrefix(name, "claude-") && price.CacheWrite == 0 {
			t.Errorf("%s: nothing for writing to the cache", name)
		}
		if price.Long != nil && (price.LongPrompt < 1000 || price.Long.Input <= price.Input || price.Long.Output <= price.Output) {
			t.Errorf("%s: long prompts %+v", name, price.Long)
		}
	}
	for model, want := range map[string]float64{
		"claude-opus-4-20250514": 15, "claude-opus-4-1-20250805": 15, "claude-opus-4-5-20251101": 5, "claude-opus-5": 5, "claude-opus-5-5": 4,
		"claude-3-5-haiku-20241022": 0.8, "gpt-4o-mini-2024-07-18": 0.15, "gpt-4.1-2025-04-14": 2, "o3": 2, "o3-mini": 1.1, "o4-mini-2025-04-16": 1.1,
	} {
		if got, ok := p.Of(model); !ok || got.Input != want {
			t.Errorf("%s: got %+v, %v", model, got, ok)
		}
	}
	for _, model := range []string{"claude-opus-6", "claude-sonnet-5-7", "claude-opus-4-9", "gpt-7", "o9"} {
		if got, ok := p.Of(model); ok {
			t.Errorf("%s: got %+v", model, got)
		}
	}
}

func ExamplePrices() {
	prices := llm.DefaultPrices().With(llm.Prices{
		"house-model": {Input: 0.5, Output: 2, CacheRead: 0.05},
	})
	usd, ok := prices.Cost("house-model-2", abi.Usage{PromptTokens: 10})
	fmt.Println(usd, ok)
	usd, _ = prices.Cost("house-model", abi.Usage{PromptTokens: 100_000, CacheReadTokens: 80_000, CompletionTokens: 1000})
	fmt.Println(usd)
	// Output:
	// 0 false
	// 0.016
}
