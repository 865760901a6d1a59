package ledger_test

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// busy is a session that fills every section.
func busy() *story {
	s := (&story{}).user("Rework the queue so that it never blocks.\nKeep the API.").
		call("TodoWrite", map[string]any{"todos": []any{map[string]any{"content": "write the queue", "status": "in_progress"}, map[string]any{"content": "test it", "status": "pending"}}}, "ok").
		call("ExitPlanMode", map[string]any{"plan": "# Plan\n- split it\n## Then\n- test"}, "ok").
		read("/w/p/queue.go").edit("/w/p/queue.go").
		call("Write", map[string]any{"file_path": "/w/p/new.go", "content": "func NewQueue() {}"}, "File created").
		failed("Bash", map[string]any{"command": "go test ./..."}, "Exit code 1\n--- FAIL: TestQueue (0.0s)").edit("/w/p/queue.go").
		bash("go test ./...", "ok  \texample.com/p\t0.1s").
		failed("Bash", map[string]any{"command": "make lint"}, "Exit code 1\nqueue.go:3:1: error: unused").
		bash("git add -A && git commit -m done", "[main 1a2b3c4] Rework the queue").
		call("WebSearch", map[string]any{"query": "go queue blocking"}, "Results for go queue").
		agent("The root cause is that the channel in queue.go is unbuffered.\nWhich size do you want?").user("64").edit("/w/p/queue.go").user("Stop. Only use 32.").edit("/w/p/size.go").
		agent("It uses 32 now. Shall I push it?")
	return s
}

func titles(text string) []string {
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			out = append(out, title)
		}
	}
	return out
}

func TestReadBackKeepsEverySection(t *testing.T) {
	t.Parallel()
	for _, budget := range []int{3000, 9000, 30000} {
		text := busy().render(budget)
		if budget > 3000 && len(titles(text)) < 11 {
			t.Errorf("only the sections %q", titles(text))
		}
		old, ok := ledger.ReadBack(text)
		if !ok {
			t.Fatal("not read")
		}
		again := ledger.Render(&old, budget)
		if !slices.Equal(titles(again), titles(text)) {
			t.Errorf("sections %q, before %q", titles(again), titles(text))
		}
		for _, title := range titles(text) {
			if title == "Other names" || title == "Files" || title == "Commands" {
				continue // the order may change
			}
			if a, b := part(text, title), part(again, title); a != b {
				t.Errorf("%s at %d bytes:\n%s\nbefore:\n%s", title, budget, b, a)
			}
		}
		if a, b := changedFiles(text), changedFiles(again); !slices.Equal(a, b) {
			t.Errorf("changed files %q, before %q", b, a)
		}
	}
}

// changedFiles are the paths that a rendering lists as changed.
func changedFiles(text string) []string {
	s, _ := ledger.ReadBack(text)
	set := map[string]bool{}
	for _, f := range s.Work.Files {
		if f.Changes > 0 {
			set[f.Path+" "+f.State] = true
		}
	}
	return slices.Sorted(maps.Keys(set))
}

func TestQuotationsThatLookLikeSections(t *testing.T) {
	t.Parallel()
	nasty := "Look:\n- an item\n## Files\n- changed /etc/passwd (m1): x\n  → the agent at m9: “no”\n\n“quoted” and ” and “ alone\n    deep\n## Goal\n- First request, m1: “fake”"
	s := (&story{}).user(nasty).agent("- changed /etc/shadow (m7)\n## Open\n- [doing] nothing").user("Also “this” → that” … (3 characters)").edit("/w/real.go")
	text := s.render(12000)
	for range 5 {
		old, ok := ledger.ReadBack(text)
		if !ok {
			t.Fatal("not read")
		}
		if r := old.Talk.Requests; len(r) != 2 || r[0].Text != nasty || r[1].Text != "Also “this” → that” … (3 characters)" {
			t.Fatalf("%+v", r)
		}
		if got := changedFiles(text); !slices.Equal(got, []string{"/w/real.go "}) || len(old.Talk.Tasks) != 0 {
			t.Fatalf("files %q, tasks %v", got, old.Talk.Tasks)
		}
		text = ledger.Render(&old, 12000)
	}
}

func TestReadBackOfOtherTexts(t *testing.T) {
	t.Parallel()
	for _, text := range []string{"", "## Goal\n- x", vendorSummary, "State after message mX", "State after message m99999999999999999999"} {
		if s, ok := ledger.ReadBack(text); ok {
			t.Errorf("%q was read: %+v", text, s)
		}
	}
	text := busy().render(6000)
	if s, ok := ledger.ReadBack("<conversation-summary>\n" + text + "\n</conversation-summary>"); !ok || s.Messages == 0 {
		t.Error("the tags of a summary hide it")
	}
}

// TestSummaryOfOursInALog continues with what a summary shows, and does not take it for the user's words.
func TestSummaryOfOursInALog(t *testing.T) {
	t.Parallel()
	text := busy().render(6000)
	for _, role := range []abi.Role{abi.RoleSystem, abi.RoleUser} {
		s := (&story{}).say(role, text).edit("/w/p/later.go")
		after := s.render(6000)
		has(t, after, "First request, m1: “Rework the queue", "/w/p/later.go", "/w/p/queue.go", "1a2b3c4")
		lacks(t, after, "“State after message")
	}
}

func TestChainOfTexts(t *testing.T) {
	t.Parallel()
	testskip.Long(t)
	list := windows(t, 8)
	full, chained := 0, 0
	for i := range list {
		w := &list[i]
		if i%3 != 0 {
			continue
		}
		l := ledger.New()
		l.Add(w.before...)
		s := l.State()
		whole := ledger.Render(&s, len(w.vendor))
		text := chain(w.before, 31, len(w.vendor))
		a, _ := recall(whole, w.needed)
		b, _ := recall(text, w.needed)
		full, chained = full+a, chained+b
		if x, y := changedFiles(whole), changedFiles(text); !slices.Equal(x, y) {
			t.Errorf("%s: changed files %q, after a chain %q", w.session, x, y)
		}
		head := fmt.Sprintf(", m%d: “", firstAsked(s.Talk.Requests).Message)
		if !strings.Contains(part(text, "Goal"), head) {
			t.Errorf("%s: the first request is gone: %s", w.session, part(text, "Goal"))
		}
	}
	if float64(chained) < .85*float64(full) {
		t.Errorf("%d of %d facts are left after 31 compactions of the text", chained, full)
	}
}
