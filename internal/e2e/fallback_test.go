package e2e_test

import (
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// TestFallbacks: while a model is down its fallback answers, and after five failures of all runs together the model is not
// asked any more.
func TestFallbacks(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	const fallback, runs = "claude-opus-4-8", 6
	var mu sync.Mutex
	asked := map[string]int{}
	w := newWorldOf(t, "version: 1\nmodels:\n  main: {provider: anthropic, name: $MODEL, base_url: \"$URL\", key: {file: key}, max_tokens: 4000, retry: {max: 1, fallbacks: ["+fallback+"]}}\n"+
		"agents:\n  worker: {model: main}\n", func(q providertest.Query) providertest.Answer {
		mu.Lock()
		defer mu.Unlock()
		asked[q.Model]++
		if q.Model == fallback {
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text("done by the fallback")}}
		}
		return providertest.Answer{Fault: &providertest.Fault{Status: http.StatusInternalServerError, Type: "api_error", Message: "down"}}
	})
	w.start(t)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	c := &client{w: w, http: http.DefaultClient}
	for i := range runs {
		status, data, err := c.call(ctx, false, http.MethodPost, "/v1/threads/t"+strconv.Itoa(i)+"/runs", map[string]any{"input": "go"})
		var run struct {
			RunID string `json:"run_id"`
		}
		if err != nil || status != http.StatusAccepted || json.Unmarshal(data, &run) != nil {
			t.Fatalf("run %d: %d %s %v", i, status, data, err)
		}
		events, err := c.follow(ctx, run.RunID)
		if err != nil || count(events, "text_delta") == 0 {
			t.Fatalf("run %d: %v %v", i, events, err)
		}
	}
	w.stop(t)
	if asked[model] != 5 || asked[fallback] != runs {
		t.Errorf("asked %v", asked)
	}
}
