package proxy_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/providertest"
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
				if s := q.Result(&q.Items[0].Blocks[0]); strings.TrimSpace(s) != "" {
					text = s
				}
			}
			out = append(out, string(wire.ResultBlock(wire.Messages, &wire.Out{ID: id}, text, false)))
		}
	}
	return out
}

// Real sessions, replayed request by request: none costs more than 1.01 of the direct one, long ones less, and nothing is
// refused that passes directly (F1, F2, acceptance 45).
func TestReplay(t *testing.T) {
	t.Parallel()
	if os.Getenv("MORTISE_REPLAY") == "" {
		testskip.Skip(t, "MORTISE_REPLAY is not set: 16 real sessions take some minutes")
	}
	shared := os.Getenv("MORTISE_SHARED")
	if shared == "" {
		shared = filepath.Join("..", "..", "shared")
	}
	files, _ := filepath.Glob(filepath.Join(shared, "data", "transcripts", "claude-code-compactions", "*.jsonl"))
	if len(files) == 0 {
		testskip.Skip(t, "no real sessions in data/transcripts of the shared folder (set MORTISE_SHARED)")
	}
	const most = 160
	for _, path := range files {
		requests := replayed(t, path)
		requests = requests[:min(len(requests), most)]
		run := func(cfg proxy.Config) (float64, int, *proxy.Report) {
			up := fake(t, func(providertest.Query) providertest.Answer {
				return providertest.Answer{Content: []abi.ContentBlock{abi.Text("ok")}}
			})
			s := start(t, up.URL(), cfg)
			a := newAgent(t, wire.Messages, s.url, false, "X-Claude-Code-Session-Id", "s")
			a.mark = true
			refused := 0
			for _, items := range requests {
				a.items = items
				resp, body := post(t, a.url+a.path(), a.body(), a.header...)
				if resp.StatusCode != http.StatusOK {
					refused++
					if refused == 1 {
						t.Logf("%s: %.200s", filepath.Base(path), body)
					}
				}
				settle(t, s)
			}
			sum, _ := cost(up.Bills())
			return sum, refused, s.Report()
		}
		direct, bad, base := run(proxy.Config{})
		c := policy()
		with, worse, r := run(proxy.Config{Compaction: c, Store: memstore.New()})
		t.Logf("%s: %d requests, direct %.3f, with %.3f: %.3f; %d swaps; machine errors %.4f %.4f; refused %d and %d; %d lanes, epochs %d", filepath.Base(path)[:12], len(requests), direct, with, with/direct,
			r.Counts["swaps"], base.Total.MachineError, r.Total.MachineError, bad, worse, len(r.Lanes), r.Lanes[0].Epoch)
		if with > 1.01*direct || worse > bad {
			t.Errorf("%s: %.3f of the direct cost, %d refused", filepath.Base(path), with/direct, worse)
		}
	}
}
