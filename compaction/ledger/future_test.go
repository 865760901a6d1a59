package ledger_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// The measurement of what an agent needs after a compaction and the text that replaces the log
// holds, for tuning: go test -run TestFuture -future ./compaction/ledger
var (
	future = flag.Bool("future", false, "print the table of future-use recall")
	half   = flag.String("half", "all", "sessions to measure: all, dev or held")
	dump   = flag.String("dump", "", "folder for the renderings")
	misses = flag.Bool("misses", false, "print what is missing at the vendor's size")
)

// sharedFolder is the folder of real recordings, which are not part of the repository.
func sharedFolder() (string, bool) {
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, "data")
	_, err := os.Stat(dir)
	return dir, err == nil
}

// shared returns a file or folder of real recordings, and skips the test where they are missing.
func shared(tb testing.TB, parts ...string) string {
	tb.Helper()
	dir, _ := sharedFolder()
	path := filepath.Join(append([]string{dir}, parts...)...)
	if _, err := os.Stat(path); err != nil {
		testskip.Skip(tb, "no real recordings in %s of the shared folder (set MORTISE_SHARED): %v", filepath.Join(parts...), err)
	}
	return path
}

// load reads the messages of a recording, with failures marked as a host marks them.
func load(tb testing.TB, path string) []transcript.Entry {
	tb.Helper()
	f, err := os.Open(path)
	if err != nil {
		tb.Fatal(err)
	}
	defer f.Close()
	file, err := transcript.Read(f, transcript.Options{Lenient: true})
	if err != nil {
		tb.Fatalf("%s: %v", path, err)
	}
	list := file.Conversations[0].Entries
	for i := range list {
		if list[i].Message.Role == abi.RoleTool && list[i].Status == abi.ToolError {
			list[i].Message.Metadata = map[string]any{abi.MetadataIsError: true}
		}
	}
	return list
}

func messagesOf(list []transcript.Entry) []abi.Message {
	out := make([]abi.Message, len(list))
	for i := range list {
		out[i] = list[i].Message
	}
	return out
}

// window is a session up to a real compaction, and what the agent needed behind it.
type window struct {
	session string
	before  []abi.Message
	vendor  string
	chars   int
	needed  []string
}

// windows reads the first compaction of each session.
func windows(t *testing.T, least int) []window {
	t.Helper()
	dir := shared(t, "transcripts", "claude-code-compactions")
	files, err := filepath.Glob(filepath.Join(dir, "*.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	var out []window
	for i, path := range files {
		if *half == "dev" && i%2 == 1 || *half == "held" && i%2 == 0 {
			continue
		}
		lines, texts := compactions(t, path)
		entries := load(t, path)
		if len(lines) == 0 {
			continue
		}
		cut := slices.IndexFunc(entries, func(e transcript.Entry) bool { return e.Line >= lines[0] })
		if cut < 1 {
			continue
		}
		end := len(entries)
		w := window{session: filepath.Base(path), before: messagesOf(entries[:cut]), vendor: texts[0]}
		w.needed, w.chars = needed(w.before, messagesOf(entries[cut:end]))
		if len(w.needed) >= least {
			out = append(out, w)
		}
	}
	return out
}

func compactions(t *testing.T, path string) (lines []int, texts []string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	in.Buffer(nil, 64<<20)
	for n := 1; in.Scan(); n++ {
		if !strings.Contains(in.Text(), `"isCompactSummary":true`) {
			continue
		}
		var v struct {
			Message struct{ Content string }
		}
		if json.Unmarshal(in.Bytes(), &v) == nil && v.Message.Content != "" {
			lines, texts = append(lines, n), append(texts, v.Message.Content)
		}
	}
	return lines, texts
}

var factPattern = regexp.MustCompile(`[A-Za-z0-9_./~@:%+#?=&-]{5,160}`)

// facts are the paths, identifiers, addresses, hashes and long numbers of a text.
func facts(text string, f func(string)) {
	for _, s := range factPattern.FindAllString(text, -1) {
		s = strings.TrimRight(strings.TrimLeft(s, "-:@#%+?=&"), ".:-@#%+?=&/~")
		if len(s) < 5 || !telling(s) {
			continue
		}
		f(s)
	}
}

func telling(s string) bool {
	for i, r := range s {
		if strings.ContainsRune("/_.:", r) || r >= '0' && r <= '9' || i > 0 && r >= 'A' && r <= 'Z' {
			return true
		}
	}
	return strings.Contains(s, "-")
}

func argumentTexts(v any, f func(string)) {
	switch v := v.(type) {
	case string:
		f(v)
	case map[string]any:
		for _, k := range slices.Sorted(maps.Keys(v)) {
			argumentTexts(v[k], f)
		}
	case []any:
		for _, e := range v {
			argumentTexts(e, f)
		}
	}
}

// needed are the facts of the messages before that a later tool call of the agent holds before
// anyone else showed them again.
func needed(before, after []abi.Message) (list []string, chars int) {
	known, shown := map[string]bool{}, map[string]bool{}
	note := func(s string) { known[s] = true }
	for i := range before {
		text := before[i].Text()
		chars += len(text)
		facts(text, note)
		for _, c := range before[i].ToolCalls {
			argumentTexts(c.Arguments, func(s string) { chars += len(s); facts(s, note) })
		}
	}
	for i := range after {
		m := &after[i]
		for _, c := range m.ToolCalls {
			argumentTexts(c.Arguments, func(s string) {
				facts(s, func(s string) {
					if known[s] && !shown[s] {
						list = append(list, s)
					}
					shown[s] = true
				})
			})
		}
		facts(m.Text(), func(s string) { shown[s] = true })
	}
	return list, chars
}

func recall(text string, needed []string) (strict, lenient int) {
	for _, n := range needed {
		if strings.Contains(text, n) {
			strict++
			lenient++
			continue
		}
		parts := strings.Split(n, "/")
		last := parts[len(parts)-1]
		if len(parts) > 1 && (strings.Contains(text, strings.Join(parts[len(parts)-2:], "/")) || len(last) >= 5 && strings.Contains(text, last)) {
			lenient++
		}
	}
	return strict, lenient
}

// chain compacts a log n times when only the text survives.
func chain(log []abi.Message, n, budget int) string {
	text := ""
	for i := range n {
		from, to := whole(log, len(log)*i/n), whole(log, len(log)*(i+1)/n)
		l := ledger.New()
		if s, ok := ledger.ReadBack(text); ok {
			l = ledger.From(s)
		}
		l.Add(log[from:to]...)
		s := l.State()
		text = ledger.Render(&s, budget)
	}
	return text
}

// whole moves a cut behind the results of a call.
func whole(log []abi.Message, at int) int {
	for at < len(log) && log[at].Role == abi.RoleTool {
		at++
	}
	return at
}

// flat is a log as text.
func flat(list []abi.Message) string {
	var b strings.Builder
	for i := range list {
		b.WriteString(list[i].Text() + "\n")
		for _, c := range list[i].ToolCalls {
			argumentTexts(c.Arguments, func(s string) { b.WriteString(s + "\n") })
		}
	}
	return b.String()
}

// bareIndex lists the ranked names and nothing else.
func bareIndex(s *abi.Ledger, budget int) string { return ledger.Index(s, budget) }

func TestFuture(t *testing.T) { //nolint:paralleltest // it prints a table
	if !*future {
		t.Skip("a measurement: run with -future")
	}
	list := windows(t, 8)
	type score struct{ strict, lenient, all int }
	var order []string
	table := map[string]*score{}
	add := func(name, text string, w *window) {
		s, ok := table[name]
		if !ok {
			s = &score{}
			table[name], order = s, append(order, name)
		}
		a, b := recall(text, w.needed)
		s.strict, s.lenient, s.all = s.strict+a, s.lenient+b, s.all+len(w.needed)
	}
	for i := range list {
		w := &list[i]
		l := ledger.New()
		l.Add(w.before...)
		s := l.State()
		tail := flat(w.before)
		for _, size := range []struct {
			name  string
			bytes int
		}{{"vendor size", len(w.vendor)}, {"1 %", w.chars / 100}, {"10 %", w.chars / 10}} {
			text := ledger.Render(&s, size.bytes)
			if len(text) > size.bytes {
				t.Errorf("%s: %d bytes, budget %d", w.session, len(text), size.bytes)
			}
			if size.name == "vendor size" {
				add("vendor", w.vendor, w)
			}
			add(size.name+": last n", tail[max(0, len(tail)-size.bytes):], w)
			add(size.name+": index", bareIndex(&s, size.bytes), w)
			add(size.name+": ledger", text, w)
			for _, n := range []int{8, 31} {
				add(fmt.Sprintf("%s: text chain of %d", size.name, n), chain(w.before, n, size.bytes), w)
			}
			if *dump != "" {
				name := filepath.Join(*dump, w.session[:8]+"-"+strings.ReplaceAll(size.name, " ", "")+".md")
				if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			if *misses && size.name == "vendor size" {
				for _, n := range w.needed {
					if x := bareIndex(&s, size.bytes); !strings.Contains(text, n) {
						fmt.Printf("%s misses %s, in index at %.2f\n", w.session[:8], n, float64(strings.Index(x, n))/float64(len(x)))
					}
				}
			}
		}
		fmt.Printf("%s %6d messages %7d characters, %3d needed, vendor %d, state names %d\n", w.session[:8], len(w.before), w.chars, len(w.needed), len(w.vendor), len(s.Names))
	}
	for _, name := range order {
		s := table[name]
		fmt.Printf("%-22s %.3f / %.3f  of %d\n", name, float64(s.strict)/float64(s.all), float64(s.lenient)/float64(s.all), s.all)
	}
}
