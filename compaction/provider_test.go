package compaction_test

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/anthropic"
	"github.com/mortise-dev/mortise/llm/openai"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// vendor is an API with a model of it.
type vendor struct {
	name, model string
	ask         llm.Model
}

// vendors are the three APIs of one fake, which refuses what the real ones refuse. Each thinks.
func vendors(t *testing.T, reply func(providertest.Query) providertest.Answer) []vendor {
	t.Helper()
	s, err := providertest.New(providertest.Config{Reply: reply})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	transport := &http.Transport{}
	t.Cleanup(transport.CloseIdleConnections)
	client := &http.Client{Transport: transport}
	messages, err1 := anthropic.New(anthropic.Config{BaseURL: s.URL(), Key: s.Key(), HTTP: client})
	responses, err2 := openai.New(openai.Config{BaseURL: s.URL() + "/v1", Key: s.Key(), HTTP: client, Summary: "auto"})
	chat, err3 := openai.New(openai.Config{API: openai.Chat, BaseURL: s.URL() + "/v1", Key: s.Key(), HTTP: client})
	if err1 != nil || err2 != nil || err3 != nil {
		t.Fatal(err1, err2, err3)
	}
	return []vendor{
		{"messages, thinks by budget", "claude-sonnet-4-5", messages},
		{"messages, adaptive", "claude-opus-4-8", messages},
		{"responses", "gpt-5", responses},
		{"chat", "gpt-5", chat},
	}
}

// infer asks for an answer to a view.
func (v *vendor) infer(ctx context.Context, view []abi.Message) (*abi.Response, error) {
	effort := "high"
	return v.ask.Infer(ctx, llm.Request{
		ThreadID: thread, Model: v.model, Messages: view, Override: &abi.InferenceOverride{ReasoningEffort: &effort},
		Tools: []abi.Tool{{Name: "read_file", Parameters: map[string]any{"type": "object"}}},
	})
}

// answerer is a model that thinks and calls tools at random.
func answerer(r *rand.Rand) func(providertest.Query) providertest.Answer {
	n := 0
	return func(providertest.Query) providertest.Answer {
		n++
		var a providertest.Answer
		if r.IntN(3) > 0 {
			a.Content = append(a.Content, abi.ContentBlock{Type: abi.BlockThinking, Text: []string{"Let me see.", ""}[r.IntN(2)]})
		}
		if r.IntN(2) == 0 {
			a.Content = append(a.Content, abi.Text(strings.Repeat("I see. ", 1+r.IntN(40))))
		}
		for i := range r.IntN(4) {
			a.Calls = append(a.Calls, abi.ToolCall{ID: fmt.Sprintf("call_%d_%d", n, i), Name: "read_file", Arguments: map[string]any{
				"path": fmt.Sprintf("/srv/f%d.go", r.IntN(5)), "note": strings.Repeat("n", r.IntN(2)*300),
			}})
		}
		if len(a.Calls) == 0 {
			a.Content = append(a.Content, abi.Text("Done."))
		}
		return a
	}
}

// TestViewsFitProviders grows random threads by the answers of each provider, some of which continue the thread of another one, with
// summaries, masks, undos, cut views and dropped content in between: no request is refused.
func TestViewsFitProviders(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testskip.Rounds(8, 2)) {
		r := rand.New(rand.NewPCG(seed, 5))
		list := vendors(t, answerer(r))
		v := list[int(seed)%len(list)]
		d := newDesk()
		masks := false
		c := d.at(t, scripted(func(ctx context.Context, q *abi.SummarizeRequest) (*abi.Summary, error) {
			if masks {
				return &abi.Summary{Masks: masksOf(q, func(int) bool { return r.IntN(3) > 0 })}, nil
			}
			return compaction.Ledger{}.Summarize(ctx, q)
		}), func(cfg *compaction.Config) {
			cfg.Policy = compaction.Policy{
				WindowTokens: 9000, ReserveTokens: 500, ThresholdTokens: 6000, KeepRecentTokens: 300, MinRangeTokens: 200, SummaryTokens: 700, MinSavingsRatio: .01, MinSurvival: -1,
				Mode: []compaction.Mode{compaction.KeepRecent, compaction.SafeFrontier}[seed%2],
			}
		})
		var log []abi.Message
		add := func(m abi.Message) {
			m.ID = fmt.Sprintf("x%d", len(log)+1)
			log = append(log, m)
		}
		if r.IntN(2) == 0 {
			add(system("", "Be brief."))
		}
		add(user("", "Read the files."))
		for step := range 40 {
			masks = r.IntN(2) == 0
			switch r.IntN(8) {
			case 0, 1, 2:
				d.pass(time.Hour)
				c.Request(thread, "")
				c.Consider(t.Context(), thread, log)
				consume(t, c, log, d.run())
			case 3:
				c.Undo(thread)
			case 4:
				v = list[r.IntN(len(list))]
			}
			view := c.View(thread, log)
			if r.IntN(10) == 0 {
				view, _ = c.Shrink(thread, view)
			}
			answer, err := v.infer(t.Context(), view)
			if err != nil {
				t.Fatalf("seed %d, step %d, %s refuses: %v\n%s", seed, step, v.name, err, outline(view))
			}
			answer.Message.Pinned = r.IntN(15) == 0
			add(answer.Message)
			for _, call := range answer.Message.ToolCalls {
				m := result("", call.ID, strings.Repeat("line of a file\n", r.IntN(80)))
				if r.IntN(6) == 0 {
					m.Metadata = map[string]any{abi.MetadataIsError: true}
				}
				m.Pinned = r.IntN(15) == 0
				add(m)
				if r.IntN(8) == 0 {
					add(system("", "A note of the program."))
				}
			}
			if len(answer.Message.ToolCalls) == 0 || r.IntN(12) == 0 {
				add(user("", strings.Repeat("And now? ", 1+r.IntN(50))))
			}
		}
		if c.Total(thread) == 0 {
			t.Errorf("seed %d: nothing was compacted", seed)
		}
	}
}

// outline is a view in short.
func outline(view []abi.Message) string {
	var b strings.Builder
	for i := range view {
		m := &view[i]
		fmt.Fprintf(&b, "%s %s %.40q %s", m.ID, m.Role, m.Text(), m.ToolCallID)
		for _, c := range m.ToolCalls {
			fmt.Fprintf(&b, " call %s", c.ID)
		}
		b.WriteByte('\n')
	}
	return b.String()
}

// TestRealViewsFitProviders is the same for real sessions, compacted as they grow.
func TestRealViewsFitProviders(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	var list []string
	for _, pattern := range []string{"claude-code-compactions/*.jsonl", "claude-code/*.jsonl", "pi-mono/*.jsonl"} {
		found, err := filepath.Glob(filepath.Join(dir, "data", "transcripts", filepath.FromSlash(pattern)))
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, found...)
	}
	if len(list) == 0 {
		testskip.Skip(t, "no real sessions; set MORTISE_SHARED to the folder that holds data/")
	}
	var compacted atomic.Int64
	t.Cleanup(func() {
		if n := compacted.Load(); n < int64(len(list)) {
			t.Errorf("%d compactions in %d sessions", n, len(list))
		}
	})
	for n, path := range list {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			r := rand.New(rand.NewPCG(uint64(n), 6))
			apis := vendors(t, func(providertest.Query) providertest.Answer {
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text("Fine.")}}
			})
			log := session(t, path)
			d, masks := newDesk(), false
			c := d.at(t, scripted(func(ctx context.Context, q *abi.SummarizeRequest) (*abi.Summary, error) {
				if masks = !masks; masks {
					return &abi.Summary{Masks: masksOf(q, func(int) bool { return r.IntN(3) > 0 })}, nil
				}
				return compaction.Ledger{}.Summarize(ctx, q)
			}), func(cfg *compaction.Config) {
				cfg.Policy = compaction.Policy{
					WindowTokens: 100_000, ReserveTokens: 1000, ThresholdTokens: 60_000, KeepRecentTokens: 4000, MinSurvival: -1, MinSavingsRatio: .02,
				}
			})
			x := boundaries(log)
			for i := 1; i <= 3; i++ {
				part := log[:x[max(0, len(x)*i/3-1)]]
				d.pass(time.Hour)
				c.Request(thread, "")
				c.Consider(t.Context(), thread, part)
				consume(t, c, part, d.run())
				view := c.View(thread, part)
				for _, v := range apis {
					if _, err := v.infer(t.Context(), view); err != nil {
						t.Fatalf("%d messages, %s refuses: %v", len(part), v.name, err)
					}
				}
			}
			compacted.Add(int64(c.Total(thread)))
		})
	}
}

// boundaries are the places where no call waits for its result.
func boundaries(log []abi.Message) []int {
	var out []int
	open := map[string]bool{}
	for i := range log {
		for _, c := range log[i].ToolCalls {
			open[c.ID] = true
		}
		delete(open, log[i].ToolCallID)
		if len(open) == 0 {
			out = append(out, i+1)
		}
	}
	return slices.Clip(out)
}
