package proxy_test

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/anthropic"
	"github.com/mortise-dev/mortise/llm/providertest"
	"github.com/mortise-dev/mortise/llm/transcript"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
	"github.com/mortise-dev/mortise/store/memstore"
)

// line is a line of a recorded session of Claude Code.
type line struct {
	Type      string
	Sidechain bool `json:"isSidechain"`
	Compact   bool `json:"isCompactSummary"`
	Message   struct {
		ID      string
		Role    string
		Content json.RawMessage
	}
}

// replayed reads a session as lists of messages, one for each request.
func replayed(t *testing.T, path string) (requests [][]string) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var items []string
	var role, id string
	var blocks []string
	open := map[string]bool{}
	flush := func() {
		if len(blocks) == 0 {
			return
		}
		if role == "assistant" && len(items) > 0 {
			requests = append(requests, append([]string(nil), items...))
		}
		if role == "user" { // what the user interrupted has a result too
			for _, id := range slices.Sorted(maps.Keys(open)) {
				blocks = append([]string{string(wire.ResultBlock(wire.Messages, &wire.Out{ID: id}, "(interrupted)", true))}, blocks...)
			}
			clear(open)
		}
		items = append(items, `{"role":"`+role+`","content":[`+strings.Join(blocks, ",")+`]}`)
		blocks = nil
	}
	in := bufio.NewScanner(bytes.NewReader(raw))
	in.Buffer(nil, 64<<20)
	for in.Scan() {
		var l line
		if json.Unmarshal(in.Bytes(), &l) != nil || l.Sidechain || l.Message.Role == "" {
			continue
		}
		if l.Compact {
			flush()
			items, open = nil, map[string]bool{}
		}
		if l.Message.Role != role || role == "assistant" && l.Message.ID != id {
			flush()
		}
		if len(items) == 0 && l.Message.Role == "assistant" && role != "user" {
			continue
		}
		if l.Message.Role == "assistant" && role == "assistant" && l.Message.ID != id && len(items) > 0 {
			continue // a turn that was cut
		}
		role, id = l.Message.Role, l.Message.ID
		blocks = append(blocks, cleaned(l.Message.Content, role, open)...)
	}
	flush()
	return requests
}

// cleaned are the blocks of a message that the fake takes: text, calls, and results of calls.
func cleaned(content json.RawMessage, role string, open map[string]bool) (out []string) {
	var text string
	if json.Unmarshal(content, &text) == nil {
		if strings.TrimSpace(text) == "" {
			return nil
		}
		return []string{`{"type":"text","text":` + quote(text) + `}`}
	}
	var list []map[string]any
	_ = json.Unmarshal(content, &list)
	for _, b := range list {
		switch b["type"] {
		case "text":
			if s, _ := b["text"].(string); strings.TrimSpace(s) != "" {
				out = append(out, `{"type":"text","text":`+quote(s)+`}`)
			}
		case "tool_use":
			open[fmt.Sprint(b["id"])] = true
			out = append(out, string(wire.Marshal(map[string]any{"type": "tool_use", "id": b["id"], "name": b["name"], "input": b["input"]})))
		case "tool_result":
			id := fmt.Sprint(b["tool_use_id"])
			if !open[id] || role != "user" {
				continue
			}
			delete(open, id)
			r, _ := json.Marshal(b["content"])
			q, _ := wire.Parse(wire.Messages, []byte(`{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"x","content":`+string(r)+`}]}]}`))
			text := "(nothing)"
			if q != nil && len(q.Items[0].Blocks) == 1 {
				if s := q.Words(&q.Items[0].Blocks[0]); strings.TrimSpace(s) != "" {
					text = s
				}
			}
			out = append(out, string(wire.ResultBlock(wire.Messages, &wire.Out{ID: id}, text, false)))
		}
	}
	return out
}

// piRequests reads a session of pi as lists of messages, one for each request.
func piRequests(t *testing.T, path string) (requests [][]string) {
	t.Helper()
	file, err := transcript.Open(path, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for i := range file.Conversations {
		var items []string
		var role abi.Role
		var blocks []string
		flush := func() {
			if len(blocks) > 0 {
				items = append(items, `{"role":"`+string(role)+`","content":[`+strings.Join(blocks, ",")+`]}`)
			}
			blocks = nil
		}
		for _, e := range file.Conversations[i].Entries {
			as := abi.RoleUser
			if e.Message.Role == abi.RoleAssistant {
				as = abi.RoleAssistant
			}
			if e.Message.Role == abi.RoleSystem || len(items)+len(blocks) == 0 && as != abi.RoleUser {
				continue
			}
			if as != role {
				flush()
			}
			if as == abi.RoleAssistant && role != as && len(items) > 0 {
				requests = append(requests, slices.Clone(items))
			}
			role = as
			if text := e.Message.Text(); e.Message.Role == abi.RoleTool {
				blocks = append(blocks, string(wire.ResultBlock(wire.Messages, &wire.Out{ID: e.Message.ToolCallID}, cmp.Or(strings.TrimSpace(text), "(nothing)"), false)))
			} else if strings.TrimSpace(text) != "" {
				blocks = append(blocks, `{"type":"text","text":`+quote(text)+`}`)
			}
			for _, c := range e.Message.ToolCalls {
				blocks = append(blocks, string(wire.Marshal(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": c.Arguments})))
			}
		}
		flush()
	}
	return requests
}

// recordedPrompt is the tokens of the longest prompt by the bills in a session, 0 where there are none.
func recordedPrompt(t *testing.T, path string) (most int64) {
	t.Helper()
	raw, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for l := range bytes.Lines(raw) {
		var e struct {
			Sidechain bool `json:"isSidechain"`
			Message   struct {
				Usage struct {
					Input  int64 `json:"input_tokens"`
					Read   int64 `json:"cache_read_input_tokens"`
					Create int64 `json:"cache_creation_input_tokens"`
				}
			}
		}
		if json.Unmarshal(l, &e) == nil && !e.Sidechain {
			u := e.Message.Usage
			most = max(most, u.Input+u.Read+u.Create)
		}
	}
	return most
}

// modelled is a summarizer that has a model read all that it replaces, and write as much as the vendors' models do.
type modelled struct{ model llm.Model }

const summaryWords = "SUMMARIZE "

func (m modelled) Summarize(ctx context.Context, r *abi.SummarizeRequest) (*abi.Summary, error) {
	var all strings.Builder
	for i := range r.Messages {
		all.WriteString(r.Messages[i].Text() + "\n")
		for _, c := range r.Messages[i].ToolCalls {
			fmt.Fprintln(&all, c.Name, c.Arguments)
		}
	}
	answer, err := m.model.Infer(ctx, llm.Request{Model: "claude-sonnet-4-5", Messages: []abi.Message{{Role: abi.RoleUser, Content: []abi.ContentBlock{abi.Text(summaryWords + all.String())}}}})
	if err != nil {
		return nil, err
	}
	return &abi.Summary{Text: answer.Message.Text()}, nil
}

// replay sends the requests of a session through a proxy, and returns what they and its summaries cost, how many were refused, and the tokens
// of the longest prompt.
func replay(t *testing.T, requests [][]string, cfg proxy.Config, byModel bool) (sum float64, refused int, longest int64, r *proxy.Report) {
	t.Helper()
	up := fake(t, func(q providertest.Query) providertest.Answer {
		if strings.HasPrefix(q.Messages[0].Text(), summaryWords) {
			return providertest.Answer{Content: []abi.ContentBlock{abi.Text(strings.Repeat("What the session came to, in words of a model. ", 200))}}
		}
		return providertest.Answer{Content: []abi.ContentBlock{abi.Text("ok")}}
	})
	if byModel {
		model, err := anthropic.New(anthropic.Config{Key: providertest.DefaultKey, BaseURL: up.URL()})
		if err != nil {
			t.Fatal(err)
		}
		cfg.Compaction.Summarizer = modelled{llm.Watched(model, proxy.Observe, nil)}
	}
	s := start(t, up.URL(), cfg)
	a := newAgent(t, wire.Messages, s.url, false, "X-Claude-Code-Session-Id", "s")
	a.mark = true
	for _, items := range requests {
		a.items = items
		resp, body := post(t, a.url+a.path(), a.body(), a.header...)
		if resp.StatusCode != http.StatusOK {
			refused++
			if refused == 1 {
				t.Logf("%.200s", body)
			}
		}
		settle(t, s)
	}
	for _, b := range up.Bills() {
		sum += b.Cost
		longest = max(longest, b.Usage.PromptTokens)
	}
	return sum, refused, longest, s.Report()
}

// Real sessions, replayed request by request with the settings of a config that names none: none costs more than 1.01 of the direct one, the median of those that pass 100,000 tokens is at
// most 0.75, and nothing is refused that passes directly (F1, F2, acceptance 45). What they cost when a model writes the summaries is logged
// beside it.
func TestReplay(t *testing.T) {
	t.Parallel()
	if os.Getenv("MORTISE_REPLAY") == "" {
		testskip.Skip(t, "MORTISE_REPLAY is not set: 17 real sessions take some minutes")
	}
	shared := cmp.Or(os.Getenv("MORTISE_SHARED"), filepath.Join("..", "..", "shared"))
	files, _ := filepath.Glob(filepath.Join(shared, "data", "transcripts", "claude-code-compactions", "*.jsonl"))
	if len(files) == 0 {
		testskip.Skip(t, "no real sessions in data/transcripts of the shared folder (set MORTISE_SHARED)")
	}
	pi, _ := filepath.Glob(filepath.Join(shared, "data", "transcripts", "pi-mono", "*.jsonl"))
	const long = 100_000
	var cheap, modelled []float64
	for _, path := range append(files, pi...) {
		read := replayed
		if slices.Contains(pi, path) {
			read = piRequests
		}
		requests := read(t, path)
		direct, bad, longest, base := replay(t, requests, proxy.Config{}, false)
		recorded := cmp.Or(recordedPrompt(t, path), longest)
		// The fake counts no system prompt and no tools, and fewer tokens for the rest: the window is as large in its tokens.
		policy := func() *proxy.Compaction {
			return &proxy.Compaction{Policy: compaction.Policy{WindowTokens: 200_000 * longest / recorded}}
		}
		with, worse, _, r := replay(t, requests, proxy.Config{Compaction: policy(), Store: memstore.New()}, false)
		paid, _, _, m := replay(t, requests, proxy.Config{Compaction: policy(), Store: memstore.New()}, true)
		t.Logf("%.12s: %d requests, longest prompt %d (recorded: %d), direct %.3f, without a model %.3f, with one %.3f; %d and %d swaps; machine errors %.4f %.4f; refused %d and %d",
			filepath.Base(path), len(requests), longest, recorded, direct, with/direct, paid/direct, r.Counts["swaps"], m.Counts["swaps"], base.Total.MachineError, r.Total.MachineError, bad, worse)
		if with > 1.01*direct || worse > bad {
			t.Errorf("%s: %.3f of the direct cost, %d refused", filepath.Base(path), with/direct, worse)
		}
		if recorded > long {
			cheap, modelled = append(cheap, with/direct), append(modelled, paid/direct)
		}
	}
	slices.Sort(cheap)
	slices.Sort(modelled)
	if len(cheap) == 0 {
		t.Fatal("no session passes 100,000 tokens")
	}
	t.Logf("%d sessions pass %d tokens; median %.3f, with a model %.3f", len(cheap), long, cheap[len(cheap)/2], modelled[len(modelled)/2])
	if m := cheap[len(cheap)/2]; m > 0.75 {
		t.Errorf("the median of long sessions is %.3f of the direct cost, want 0.75", m)
	}
}
