package extract_test

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

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
		skip(tb, fmt.Sprintf("no survival scores: %s is missing; set MORTISE_SHARED to the folder that holds data/", data))
	}
	return data
}

// skip skips a test, and lists it for make modules, as internal/testskip does for the tests of the host, which this module cannot import.
// It does not fail in CI, which need not have recordings that are not in the repository.
func skip(tb testing.TB, why string) {
	tb.Helper()
	if path := os.Getenv("MORTISE_SKIPPED"); path != "" {
		f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
		if err == nil {
			_, err = fmt.Fprintf(f, "%s: %s\n", tb.Name(), why)
			err = errors.Join(err, f.Close())
		}
		if err != nil {
			tb.Fatal(err)
		}
	}
	tb.Skip("SKIPPED: " + why)
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

// identifiers lists every word that names something by its form, once, in the
// order of appearance.
func identifiers(list []mortise.Message, budget int) string {
	word := regexp.MustCompile(`[A-Za-z0-9_][A-Za-z0-9_./:@#-]*[A-Za-z0-9_]|[0-9]`)
	seen := map[string]bool{}
	var b strings.Builder
	for _, t := range flat(list) {
		for _, w := range word.FindAllString(t, -1) {
			if strings.ContainsAny(w, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/") && !seen[w] && b.Len()+len(w)+1 <= budget {
				seen[w] = true
				b.WriteString(w + " ")
			}
		}
	}
	return b.String()
}

func identifiersAndLastN(list []mortise.Message, budget int) string {
	return identifiers(list, budget/2) + "\n" + lastN(list, budget/2-1)
}

// central takes the sentences that share most words with the rest.
func central(list []mortise.Message, budget int) string {
	var all []string
	seen := map[string]int{}
	for _, t := range flat(list) {
		for _, s := range strings.FieldsFunc(t, func(r rune) bool { return strings.ContainsRune(".!?\n", r) }) {
			all = append(all, strings.TrimSpace(s))
			for _, w := range contentWords(s) {
				seen[w]++
			}
		}
	}
	score := func(s string) (sum float64) {
		words := contentWords(s)
		for _, w := range words {
			sum += math.Log(float64(1 + seen[w]))
		}
		return sum / float64(8+len(words))
	}
	slices.SortStableFunc(all, func(a, b string) int { return cmp.Compare(score(b), score(a)) })
	var b strings.Builder
	for _, s := range all {
		if b.Len()+len(s)+1 <= budget {
			b.WriteString(s + "\n")
		}
	}
	return b.String()
}

// score is which share of a probe survives: any one of the answers, or keys,
// which count by themselves. Grounded is what stands within 200 characters of a
// content word of the question or, without one, of a sentence that held it.
func (p *probe) score(text string, talk []string) (literal, grounded float64) {
	lower := strings.ToLower(text)
	if len(p.Keys) > 0 {
		for _, k := range p.Keys {
			l, g := find(lower, strings.ToLower(k), contentWords(p.Question))
			literal += l / float64(len(p.Keys))
			grounded += g / float64(len(p.Keys))
		}
		return literal, grounded
	}
	for _, a := range p.Answers {
		words := contentWords(p.Question)
		if p.Question == "" {
			words = around(talk, strings.ToLower(a))
		}
		l, g := find(lower, strings.ToLower(a), words)
		literal, grounded = max(literal, l), max(grounded, g)
	}
	return literal, grounded
}

// around is the content words of the sentences that hold a text.
func around(talk []string, needle string) []string {
	var out []string
	for _, t := range talk {
		for s := range strings.SplitSeq(strings.ToLower(strings.ReplaceAll(t, ". ", ".\n")), "\n") {
			if strings.Contains(s, needle) {
				out = append(out, contentWords(s)...)
			}
		}
	}
	return out
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
// characters. It fails when the policy is not above every baseline on both
// scores, or below the goals for grounded facts.
func TestSurvival(t *testing.T) {
	data := sharedData(t)
	baselines := []struct {
		name string
		run  method
	}{
		{"last n", lastN},
		{"first+last", firstLast},
		{"head of every message", heads},
		{"central sentences", central},
		{"identifiers", identifiers},
		{"identifiers, last n", identifiersAndLastN},
	}
	for _, set := range []struct {
		name, file string
		load       func(testing.TB, string) map[string][]mortise.Message
		goal       float64 // grounded, against the best baseline
	}{
		{"BFCL memory", "bfcl-memory", loadBFCL, 1.5},
		{"QMSum", "qmsum", loadQMSum, 1.2},
		{"tau-bench", "tau-bench", loadTau, 0},
		{"mini-swe-agent", "mini-swe-agent", loadSWE, 0},
	} {
		talks := set.load(t, data)
		probes := readProbes(t, filepath.Join(data, "probes", set.file+".jsonl"))
		var best [2]float64
		for _, m := range baselines {
			l, g := survival(t, talks, probes, m.run)
			best[0], best[1] = max(best[0], l), max(best[1], g)
			t.Logf("%-15s %-22s literal %.2f grounded %.2f", set.name, m.name, l, g)
		}
		l, g := survival(t, talks, probes, withoutModel)
		t.Logf("%-15s %-22s literal %.2f grounded %.2f", set.name, "extract", l, g)
		if l < best[0] || g < best[1] || g < set.goal*best[1] {
			t.Errorf("%s: literal %.2f of %.2f, grounded %.2f of %.2f times %.1f", set.name, l, best[0], g, best[1], set.goal)
		}
		once := chained(t, talks, probes, 1)
		if l := chained(t, talks, probes, 8); l < 0.8*once {
			t.Errorf("%s: %.2f after 8 compactions, %.2f after one", set.name, l, once)
		}
	}
}

func survival(t *testing.T, talks map[string][]mortise.Message, probes []probe, run method) (literal, grounded float64) {
	t.Helper()
	texts := map[string]string{}
	n := 0.0
	for _, p := range probes {
		if len(p.Keys) == 0 && len(p.Answers) == 1 && len(p.Answers[0]) > 120 {
			continue // an answer in prose without anything to look for
		}
		talk := talks[p.Conversation]
		if len(talk) == 0 {
			t.Fatalf("probe %s: no conversation %s", p.ID, p.Conversation)
		}
		said := flat(talk)
		if _, ok := texts[p.Conversation]; !ok {
			budget := len(strings.Join(said, "\n")) / 10
			text := run(talk, budget)
			if len(text) > budget {
				t.Errorf("%s: %d bytes of %d", p.Conversation, len(text), budget)
			}
			texts[p.Conversation] = text
		}
		l, g := p.score(texts[p.Conversation], said)
		literal, grounded, n = literal+l, grounded+g, n+1
	}
	return literal / n, grounded / n
}

// chained compacts k times while the conversation continues, each time to 10 % of
// what was said so far, and returns which share of the facts is there at the end.
func chained(t *testing.T, talks map[string][]mortise.Message, probes []probe, k int) float64 {
	t.Helper()
	literal, _ := survival(t, talks, probes, func(talk []mortise.Message, _ int) (text string) {
		var previous *string
		for i := range k {
			upTo := len(talk) * (i + 1) / k
			s, err := extract.Summarize(&mortise.SummarizeRequest{
				Messages: talk[len(talk)*i/k : upTo], PreviousSummary: previous,
				BudgetTokens: int64(len(strings.Join(flat(talk[:upTo]), "\n")) / 10), Config: map[string]any{"bytes_per_token": 1.0},
			})
			if err == nil { // the first parts may be too small for a summary
				text, previous = s.Text, &s.Text
			}
		}
		return text
	})
	return literal
}
