package extract_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	mortise "github.com/mortise-dev/mortise/sdk/go"
	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/extract"
)

// sharedData finds the folder of real inputs, or skips.
func sharedData(tb testing.TB) string {
	tb.Helper()
	root := os.Getenv("MORTISE_SHARED")
	if root == "" {
		dir, err := os.Getwd()
		if err != nil {
			tb.Fatal(err)
		}
		for ; dir != "/" && root == ""; dir = filepath.Dir(dir) {
			if b, err := os.ReadFile(filepath.Join(dir, "go.mod")); err == nil && strings.HasPrefix(string(b), "module github.com/mortise-dev/mortise\n") {
				root = filepath.Join(filepath.Dir(dir), "shared")
			}
		}
	}
	data := filepath.Join(root, "data")
	if _, err := os.Stat(filepath.Join(data, "probes")); err != nil {
		tb.Skipf("SKIPPED: no survival scores: %s is missing; set MORTISE_SHARED to the folder that holds data/", data)
	}
	return data
}

type probe struct {
	ID           string   `json:"id"`
	Conversation string   `json:"conversation"`
	Question     string   `json:"question"`
	Answers      []string `json:"answers"`
	Keys         []string `json:"keys"`
}

func readProbes(tb testing.TB, path string) []probe {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	var list []probe
	for s := bufio.NewScanner(f); s.Scan(); {
		var p probe
		if err := json.Unmarshal(s.Bytes(), &p); err != nil {
			tb.Fatal(err)
		}
		list = append(list, p)
	}
	return list
}

func say(role mortise.Role, text string) mortise.Message {
	return mortise.Message{Role: role, Content: []mortise.ContentBlock{mortise.Text(text)}}
}

func readLines(tb testing.TB, path string, f func(i int, line []byte)) {
	tb.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	i := 0
	for line := range strings.SplitSeq(strings.TrimSpace(string(b)), "\n") {
		f(i, []byte(line))
		i++
	}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}

func loadBFCL(tb testing.TB, data string) map[string][]mortise.Message {
	out := map[string][]mortise.Message{}
	for _, name := range []string{"customer", "notetaker"} {
		readLines(tb, filepath.Join(data, "transcripts/bfcl-memory/memory_"+name+".json"), func(_ int, line []byte) {
			var rec struct {
				Question [][]struct{ Role, Content string }
			}
			must(tb, json.Unmarshal(line, &rec))
			for _, turn := range rec.Question {
				for _, m := range turn {
					out[name] = append(out[name], say(mortise.Role(m.Role), m.Content))
				}
			}
		})
	}
	return out
}

func loadQMSum(tb testing.TB, data string) map[string][]mortise.Message {
	out := map[string][]mortise.Message{}
	for _, name := range []string{"Committee", "Academic"} {
		readLines(tb, filepath.Join(data, "transcripts/qmsum/"+strings.ToLower(name)+"-val.jsonl"), func(i int, line []byte) {
			var rec struct {
				Turns []struct{ Speaker, Content string } `json:"meeting_transcripts"`
			}
			must(tb, json.Unmarshal(line, &rec))
			key := name + "/jsonl/val.jsonl:" + strconv.Itoa(i)
			for _, t := range rec.Turns {
				out[key] = append(out[key], say(mortise.RoleUser, t.Speaker+": "+t.Content))
			}
		})
	}
	return out
}

type openAIMessage struct {
	Role      string
	Content   any
	ToolCalls []struct {
		ID       string
		Function struct{ Name, Arguments string }
	} `json:"tool_calls"`
}

func (m openAIMessage) message() mortise.Message {
	text, _ := m.Content.(string)
	out := say(mortise.Role(m.Role), text)
	for _, c := range m.ToolCalls {
		var args any
		if json.Unmarshal([]byte(c.Function.Arguments), &args) != nil {
			args = c.Function.Arguments
		}
		out.ToolCalls = append(out.ToolCalls, mortise.ToolCall{ID: c.ID, Name: c.Function.Name, Arguments: args})
	}
	return out
}

func loadTau(tb testing.TB, data string) map[string][]mortise.Message {
	b, err := os.ReadFile(filepath.Join(data, "transcripts/tau-bench/gpt-4o-airline-tasks-0-24.json"))
	must(tb, err)
	var recs []struct {
		TaskID int `json:"task_id"`
		Trial  int
		Traj   []openAIMessage
	}
	must(tb, json.Unmarshal(b, &recs))
	out := map[string][]mortise.Message{}
	for _, r := range recs {
		key := fmt.Sprintf("%d/%d", r.TaskID, r.Trial)
		for _, m := range r.Traj {
			out[key] = append(out[key], m.message())
		}
	}
	return out
}

func loadSWE(tb testing.TB, data string) map[string][]mortise.Message {
	out := map[string][]mortise.Message{}
	files, err := filepath.Glob(filepath.Join(data, "transcripts/mini-swe-agent/*/*.traj.json"))
	must(tb, err)
	for _, f := range files {
		b, err := os.ReadFile(f)
		must(tb, err)
		var rec struct{ Messages []openAIMessage }
		must(tb, json.Unmarshal(b, &rec))
		key := filepath.Base(filepath.Dir(f))
		for _, m := range rec.Messages {
			out[key] = append(out[key], m.message())
		}
	}
	return out
}

// flat is the conversation as a reader would see it.
func flat(list []mortise.Message) []string {
	out := make([]string, 0, len(list))
	for i := range list {
		s := list[i].Text()
		for _, c := range list[i].ToolCalls {
			b, _ := json.Marshal(c.Arguments)
			s += "\n" + c.Name + string(b)
		}
		out = append(out, s)
	}
	return out
}

type method func(list []mortise.Message, budget int) string

func withoutModel(list []mortise.Message, budget int) string {
	s, err := extract.Summarize(&mortise.SummarizeRequest{
		Messages: list, BudgetTokens: int64(budget),
		Config: map[string]any{"bytes_per_token": 1.0},
	})
	if err != nil {
		return ""
	}
	return s.Text
}

func lastN(list []mortise.Message, budget int) string {
	all := strings.Join(flat(list), "\n")
	return all[max(0, len(all)-budget):]
}

func firstLast(list []mortise.Message, budget int) string {
	all := strings.Join(flat(list), "\n")
	if len(all) <= budget {
		return all
	}
	return all[:budget/2] + "\n" + all[len(all)-budget/2+1:]
}

// heads takes the head of every message, all of the same length.
func heads(list []mortise.Message, budget int) string {
	texts := flat(list)
	n := max(1, budget/len(texts)-1)
	var b strings.Builder
	for _, t := range texts {
		b.WriteString(t[:min(n, len(t))] + "\n")
	}
	return b.String()[:min(budget, b.Len())]
}

// needles are what must survive: answers of which any one is enough, or keys
// that count by themselves.
func (p *probe) score(text string) (literal, grounded float64) {
	lower := strings.ToLower(text)
	words := contentWords(p.Question)
	if len(p.Keys) > 0 {
		for _, k := range p.Keys {
			l, g := find(lower, strings.ToLower(k), words)
			literal += l / float64(len(p.Keys))
			grounded += g / float64(len(p.Keys))
		}
		return literal, grounded
	}
	for _, a := range p.Answers {
		l, g := find(lower, strings.ToLower(a), words)
		literal, grounded = max(literal, l), max(grounded, g)
	}
	return literal, grounded
}

func isWord(c byte) bool { return c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '_' }

// find looks for needle at word borders, and for a content word of the question
// within 200 characters of it. A word that is part of the needle does not count.
func find(text, needle string, words []string) (literal, grounded float64) {
	for at := 0; ; {
		i := strings.Index(text[at:], needle)
		if i < 0 {
			return literal, grounded
		}
		i += at
		end := i + len(needle)
		at = i + 1
		if i > 0 && isWord(text[i-1]) || end < len(text) && isWord(text[end]) {
			continue
		}
		literal = 1
		near := text[max(0, i-200):i] + " " + text[end:min(len(text), end+200)]
		for _, w := range words {
			if !strings.Contains(needle, w) && strings.Contains(near, w) {
				return 1, 1
			}
		}
	}
}

func contentWords(q string) []string {
	var out []string
	stop := strings.Fields("what which where when does did have that this with from about give name said says they their the was were how many much should would could will the for and are you your can that's i'm need know there than")
	for _, w := range strings.FieldsFunc(strings.ToLower(q), func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') }) {
		if len(w) >= 4 && !slices.Contains(stop, w) {
			out = append(out, w)
		}
	}
	return out
}

// TestSurvival prints which share of the facts survives at 10 % of the
// characters. It fails when the summarizer is not above every baseline.
func TestSurvival(t *testing.T) {
	data := sharedData(t)
	methods := []struct {
		name string
		run  method
	}{{"extract", withoutModel}, {"last n", lastN}, {"first+last", firstLast}, {"head of every message", heads}}
	for _, set := range []struct {
		name, file string
		load       func(testing.TB, string) map[string][]mortise.Message
	}{
		{"BFCL memory", "bfcl-memory", loadBFCL},
		{"QMSum", "qmsum", loadQMSum},
		{"tau-bench", "tau-bench", loadTau},
		{"mini-swe-agent", "mini-swe-agent", loadSWE},
	} {
		talks := set.load(t, data)
		probes := readProbes(t, filepath.Join(data, "probes", set.file+".jsonl"))
		var best float64
		for _, m := range methods {
			texts := map[string]string{}
			var lit, gr float64
			asked := 0
			var spent time.Duration
			for _, p := range probes {
				talk := talks[p.Conversation]
				if len(talk) == 0 {
					t.Fatalf("probe %s: no conversation %s", p.ID, p.Conversation)
				}
				if _, ok := texts[p.Conversation]; !ok {
					budget := len(strings.Join(flat(talk), "\n")) / 10
					start := time.Now()
					texts[p.Conversation] = m.run(talk, budget)
					spent += time.Since(start)
					if n := len(texts[p.Conversation]); n > budget {
						t.Errorf("%s %s: %d bytes of %d", m.name, p.Conversation, n, budget)
					}
				}
				l, g := p.score(texts[p.Conversation])
				lit += l
				gr += g
				if p.Question != "" {
					asked++
				}
				if os.Getenv("MISSES") != "" && m.name == "extract" && l < 1 {
					t.Logf("miss %s %q %q %q", p.ID, p.Question, p.Answers, p.Keys)
				}
			}
			n := float64(len(probes))
			ground := "   n/a"
			if asked > 0 {
				ground = fmt.Sprintf("%5.1f%%", 100*gr/float64(asked))
			}
			t.Logf("%-15s %-22s literal %5.1f%%  grounded %s  %d probes %d talks %s", set.name, m.name, 100*lit/n, ground, len(probes), len(texts), spent.Round(time.Millisecond))
			if m.name == "extract" {
				best = lit
			} else if lit > best {
				t.Errorf("%s: %s keeps more than extract", set.name, m.name)
			}
		}
	}
}
