package compaction_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// loose keeps n messages and finds any range worth a summary.
func loose(n int) compaction.Policy { return compaction.Policy{KeepRecentMessages: n} }

func TestPlan(t *testing.T) {
	t.Parallel()
	big := words(2000)
	for _, tc := range []struct {
		name     string
		log      []abi.Message
		prev     *compaction.Marker
		policy   compaction.Policy
		from, to string // empty: nothing to summarize
	}{
		{name: "empty log", policy: loose(0)},
		{name: "system only", log: []abi.Message{system("s", big)}, policy: loose(0)},
		{name: "too few messages", log: []abi.Message{user("u", "hi"), assistant("a", "ho")}, policy: loose(2)},
		{
			name: "the leading system messages stay", policy: loose(1), from: "u", to: "a",
			log: []abi.Message{system("s", "x"), system("s2", "x"), user("u", "x"), assistant("a", "x"), user("u2", "x")},
		},
		{
			name: "up to the end", policy: loose(0), from: "a", to: "a2",
			log: []abi.Message{assistant("a", "x"), assistant("a2", "x")},
		},
		{
			name: "the suffix stays", policy: loose(3), from: "a", to: "b",
			log: []abi.Message{assistant("a", "x"), assistant("b", "x"), assistant("c", "x"), assistant("d", "x"), assistant("e", "x")},
		},
		{
			name: "the suffix is counted in tokens too", policy: compaction.Policy{KeepRecentTokens: 1500}, from: "a", to: "a",
			log: []abi.Message{assistant("a", big), assistant("b", words(1000)), assistant("c", words(1000))},
		},
		{
			name: "a pair is not split", policy: loose(1), from: "a", to: "a",
			log: []abi.Message{assistant("a", "x"), calls("m", "c"), result("r", "c", "x")},
		},
		{
			name: "several calls in a round", policy: loose(1), from: "a", to: "a",
			log: []abi.Message{assistant("a", "x"), calls("m", "c", "d", "e"), result("r", "c", "x"), result("r2", "d", "x"), result("r3", "e", "x")},
		},
		{
			name: "several complete rounds", policy: loose(1), from: "m", to: "r2",
			log: []abi.Message{calls("m", "c"), result("r", "c", "x"), calls("m2", "d"), result("r2", "d", "x"), assistant("a", "x")},
		},
		{
			name: "something stands between a call and its result", policy: loose(1), from: "a", to: "a",
			log: []abi.Message{assistant("a", "x"), calls("m", "c"), message("n", abi.RoleSystem, "note"), result("r", "c", "x")},
		},
		{
			name: "an interrupted call counts as answered", policy: loose(1), from: "m", to: "r2",
			log: []abi.Message{calls("m", "lost"), assistant("a", "x"), calls("m2", "c"), result("r2", "c", "x"), user("u", "x")},
		},
		{
			name: "one call of a round was interrupted", policy: loose(1), from: "m", to: "r",
			log: []abi.Message{calls("m", "lost", "c"), result("r", "c", "x"), user("u", "x")},
		},
		{
			name: "an id that comes again", policy: loose(1), from: "m", to: "r2",
			log: []abi.Message{calls("m", "c"), result("r", "c", "x"), calls("m2", "c"), result("r2", "c", "x"), user("u", "x")},
		},
		{
			name: "a result without a call does not stand first", policy: loose(1), from: "a", to: "a",
			log: []abi.Message{assistant("a", "x"), assistant("b", "x"), result("r", "nobody", "x")},
		},
		{
			name: "no range of few tokens", policy: compaction.Policy{MinRangeTokens: 1024, KeepRecentMessages: 1},
			log: []abi.Message{user("u", "x"), assistant("a", "x"), user("u2", "x"), assistant("a2", "x")},
		},
		{
			name: "the request under way stays", policy: compaction.Policy{MinRangeTokens: 1000, KeepRecentMessages: 1}, from: "a", to: "a",
			log: []abi.Message{assistant("a", big), user("u", "do it"), calls("m", "c"), result("r", "c", big), assistant("b", "x")},
		},
		{
			name: "a turn that is too large is split", policy: compaction.Policy{MinRangeTokens: 1000, KeepRecentMessages: 1}, from: "u", to: "r",
			log: []abi.Message{system("s", "x"), user("u", "do it"), calls("m", "c"), result("r", "c", big), assistant("b", "x")},
		},
		{
			name: "internal messages are no request", policy: compaction.Policy{MinRangeTokens: 1000, KeepRecentMessages: 1}, from: "a", to: "n",
			log: []abi.Message{
				assistant("a", big),
				{ID: "n", Role: abi.RoleUser, Visibility: abi.VisibilityInternal, Content: []abi.ContentBlock{abi.Text("news")}},
				assistant("b", "x"),
			},
		},
		{
			name: "behind the marker", policy: loose(1), from: "b", to: "b",
			prev: &compaction.Marker{FromID: "u", ToID: "a"},
			log:  []abi.Message{system("s", "x"), user("u", "x"), assistant("a", "x"), assistant("b", "x"), assistant("c", "x")},
		},
		{
			name: "behind the marker a system message counts", policy: loose(1), from: "s2", to: "s2",
			prev: &compaction.Marker{FromID: "u", ToID: "a"},
			log:  []abi.Message{user("u", "x"), assistant("a", "x"), system("s2", "x"), assistant("c", "x")},
		},
		{
			name: "a marker of another log", policy: loose(1), from: "u", to: "a",
			prev: &compaction.Marker{FromID: "elsewhere", ToID: "a"},
			log:  []abi.Message{user("u", "x"), assistant("a", "x"), user("u2", "x")},
		},
		{
			name: "without ids", policy: loose(1),
			log: []abi.Message{assistant("", "x"), assistant("", "x"), assistant("", "x")},
		},
		{
			name: "with an id that is not unique", policy: loose(1),
			log: []abi.Message{assistant("a", "x"), assistant("a", "x"), assistant("b", "x")},
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r, ok := compaction.Plan(tc.log, tc.prev, tc.policy)
			if ok != (tc.from != "") {
				t.Fatalf("planned %v: %+v", ok, r)
			}
			if !ok {
				return
			}
			if r.FromID != tc.from || r.ToID != tc.to {
				t.Errorf("from %s to %s, want %s to %s", r.FromID, r.ToID, tc.from, tc.to)
			}
			if tc.log[r.From].ID != r.FromID || tc.log[r.To].ID != r.ToID {
				t.Errorf("indices %d and %d are not those of the ids", r.From, r.To)
			}
			if want := compaction.Estimate(tc.log[r.From : r.To+1]); r.Tokens != want {
				t.Errorf("%d tokens, want %d", r.Tokens, want)
			}
		})
	}
}

// What the first compaction kept must be in the range of the second, and with
// that in its summary: nothing falls between two compactions.
func TestPlanLosesNothingBetweenCompactions(t *testing.T) {
	t.Parallel()
	log := rounds(60)
	p := compaction.Policy{KeepRecentTokens: 600, KeepRecentMessages: 2, MinRangeTokens: 1024}
	summarized := make(map[string]int)
	var m *compaction.Marker
	for k := range 4 {
		r, ok := compaction.Plan(log, m, p)
		if !ok {
			t.Fatalf("compaction %d: nothing to summarize", k)
		}
		if m != nil && (r.PreviousSummary == nil || *r.PreviousSummary != m.Summary || log[r.From-1].ID != m.ToID) {
			t.Fatalf("compaction %d begins with %s, not right behind %s", k, r.FromID, m.ToID)
		}
		if len(log)-r.To <= 2 {
			t.Fatalf("compaction %d kept nothing", k)
		}
		for i := r.From; i <= r.To; i++ {
			summarized[log[i].ID]++
		}
		m = &compaction.Marker{ID: fmt.Sprint(k), FromID: "q", ToID: r.ToID, Summary: fmt.Sprintf("summary %d", k)}
		// While that summary was being written the conversation continued.
		for i := range 40 {
			call := fmt.Sprintf("k%d-%d", k, i)
			log = append(log, calls("m"+call, call), result("r"+call, call, words(40)))
		}
	}
	shown := make(map[string]bool)
	for _, v := range compaction.View(log, m) {
		shown[v.ID] = true
	}
	for i := range log {
		id := log[i].ID
		switch {
		case summarized[id] > 1:
			t.Errorf("%s was summarized %d times", id, summarized[id])
		case summarized[id] == 0 && !shown[id]:
			t.Errorf("%s is neither summarized nor shown", id)
		case summarized[id] == 1 && shown[id] && id != "q": // the request under way
			t.Errorf("%s is summarized and shown", id)
		}
	}
}

func TestPlanFiles(t *testing.T) {
	t.Parallel()
	call := func(id, name string, kind abi.ToolKind, arguments any) abi.Message {
		return abi.Message{ID: id, Role: abi.RoleAssistant, ToolCalls: []abi.ToolCall{{ID: "c" + id, Name: name, Kind: kind, Arguments: arguments}}}
	}
	path := func(p any) any { return map[string]any{"path": p} }
	log := []abi.Message{
		call("1", "read", "", path("b.go")),
		call("2", "read", "", path("a.go")),
		call("3", "edit", "", path("a.go")),
		call("4", "frobnicate", abi.ToolEdit, map[string]any{"file_path": "c.go"}),
		call("5", "write", "", `{"filename":"d.go"}`),
		call("6", "read", "", "no JSON"),
		call("7", "read", "", path(7)),
		call("8", "read", "", path(strings.Repeat("x", 2000))),
		call("9", "shell", abi.ToolExecute, path("e.go")),
		call("10", "read", abi.ToolOther, path("seen.go")),
		assistant("11", "x"),
	}
	prev := &compaction.Marker{FromID: "1", ToID: "1", ReadFiles: []string{"c.go", "old.go"}, ModifiedFiles: []string{"was.go"}}
	r, ok := compaction.Plan(log, prev, loose(1))
	if !ok {
		t.Fatal("nothing to summarize")
	}
	if want := []string{"old.go", "seen.go"}; !slices.Equal(r.ReadFiles, want) {
		t.Errorf("read %v, want %v", r.ReadFiles, want)
	}
	if want := []string{"a.go", "c.go", "d.go", "was.go"}; !slices.Equal(r.ModifiedFiles, want) {
		t.Errorf("modified %v, want %v", r.ModifiedFiles, want)
	}

	t.Run("the newest are kept", func(t *testing.T) {
		t.Parallel()
		var many []abi.Message
		for i := range 700 {
			many = append(many, call(fmt.Sprint(i), "read", "", path(fmt.Sprintf("f%04d", i))))
		}
		r, ok := compaction.Plan(many, nil, loose(0))
		if !ok || len(r.ReadFiles) != 500 || r.ReadFiles[0] != "f0200" || r.ReadFiles[499] != "f0699" {
			t.Errorf("planned %v, %d files: %v", ok, len(r.ReadFiles), r.ReadFiles[:1])
		}
	})
}
