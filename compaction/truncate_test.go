package compaction_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

func TestTruncate(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789 ", 1000)
	t.Run("what fits is not touched", func(t *testing.T) {
		t.Parallel()
		view := rounds(5)
		if got := compaction.Truncate(view, compaction.Estimate(view)); &got[0] != &view[0] || len(got) != len(view) {
			t.Error("the view was copied or cut")
		}
	})
	t.Run("long outputs first, oldest first", func(t *testing.T) {
		t.Parallel()
		view := []abi.Message{
			user("u", "x"), calls("m", "c", "d"), result("r", "c", long), result("r2", "d", long), assistant("a", long),
		}
		got := compaction.Truncate(view, compaction.Estimate(view)-3000)
		if !slices.Equal(ids(got), ids(view)) || len(got[2].Text()) > 2200 || got[3].Text() != long || got[4].Text() != long {
			t.Errorf("cut to %v", ids(got))
		}
		if text := got[2].Text(); !strings.HasPrefix(text, "0123456789 ") || !strings.HasSuffix(text, "0123456789 ") ||
			!strings.Contains(text, "bytes are not shown: the context window is full") {
			t.Errorf("the output became %q", text)
		}
	})
	t.Run("then the oldest rounds, whole", func(t *testing.T) {
		t.Parallel()
		view := rounds(20)
		budget := compaction.Estimate(view) / 2
		got := compaction.Truncate(view, budget)
		want := append([]string{"s", "truncated", "q"}, ids(view)[len(view)-len(got)+3:]...)
		if !slices.Equal(ids(got), want) || got[3].Role != abi.RoleAssistant {
			t.Errorf("cut to %v", ids(got))
		}
		if n := compaction.Estimate(got); n > budget || n < budget-200 {
			t.Errorf("%d tokens of %d", n, budget)
		}
	})
	t.Run("a round with something in between goes whole", func(t *testing.T) {
		t.Parallel()
		view := []abi.Message{
			calls("m", "c"), message("n", abi.RoleSystem, words(200)), result("r", "c", words(200)), user("u", "x"), assistant("a", "x"),
		}
		if got := ids(compaction.Truncate(view, 60)); !slices.Equal(got, []string{"truncated", "u", "a"}) {
			t.Errorf("cut to %v", got)
		}
	})
	t.Run("the summary stays", func(t *testing.T) {
		t.Parallel()
		log := rounds(40)
		view := compaction.View(log, &compaction.Marker{ID: "1", FromID: "q", ToID: "rc9", Summary: words(300)})
		got := compaction.Truncate(view, 600)
		if want := []string{"s", "summary/1", "truncated", "q"}; !slices.Equal(ids(got)[:4], want) || !reflect.DeepEqual(got[1], view[1]) {
			t.Errorf("cut to %v", ids(got))
		}
	})
	t.Run("pins, the latest user and the newest round stay at any price", func(t *testing.T) {
		t.Parallel()
		view := []abi.Message{
			user("u", words(100)), calls("m", "c", "d"), result("r", "c", words(100)), pinned(result("r2", "d", long)),
			assistant("a", words(100)), user("u2", words(100)), assistant("b", words(100)), calls("m2", "e"), result("r3", "e", words(100)),
		}
		got := compaction.Truncate(view, 1)
		if want := []string{"truncated", "m", "r", "r2", "u2", "m2", "r3"}; !slices.Equal(ids(got), want) || got[3].Text() != long {
			t.Errorf("cut to %v", ids(got))
		}
	})
	t.Run("nothing to show", func(t *testing.T) {
		t.Parallel()
		if got := compaction.Truncate(nil, -5); len(got) != 0 {
			t.Errorf("cut to %v", ids(got))
		}
	})
}

func TestTruncateOnRuneBoundaries(t *testing.T) {
	t.Parallel()
	for i := range 5 {
		view := []abi.Message{calls("m", "c"), result("r", "c", strings.Repeat("x", i)+strings.Repeat("語🙂é", 2000))}
		if text := compaction.Truncate(view, 10)[1].Text(); !utf8.ValidString(text) || len(text) > 2200 {
			t.Errorf("shifted by %d: %d bytes, valid %v", i, len(text), utf8.ValidString(text))
		}
	}
	// Bytes that are no characters must not lead the cut out of the text.
	for _, hostile := range []string{"\x80", "\xbf\xff", "\xf0\x9f"} {
		view := []abi.Message{calls("m", "c"), result("r", "c", strings.Repeat(hostile, 5000))}
		if text := compaction.Truncate(view, 10)[1].Text(); len(text) > 2200 {
			t.Errorf("%q: %d bytes", hostile, len(text))
		}
	}
}

// The properties hold for any conversation and budget.
func TestTruncateProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(200) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			truncated(t, seed, int64(seed*37%4000))
		})
	}
}

func FuzzTruncate(f *testing.F) {
	f.Add(uint64(1), int64(0))
	f.Add(uint64(9), int64(-1))
	f.Add(uint64(12), int64(2000))
	f.Fuzz(truncated)
}

func truncated(t *testing.T, seed uint64, budget int64) {
	t.Helper()
	g := newTalk(seed)
	g.on(60)
	frozen, err := json.Marshal(g.log)
	if err != nil {
		t.Fatal(err)
	}
	cut := compaction.Truncate(g.log, budget)
	if now, err := json.Marshal(g.log); err != nil || !bytes.Equal(now, frozen) {
		t.Fatal("the view was changed")
	}
	if again := compaction.Truncate(cut, budget); !reflect.DeepEqual(again, cut) {
		t.Fatalf("cut again, %v became %v", ids(cut), ids(again))
	}
	shown := make(map[string]bool)
	for i := range cut {
		if shown[cut[i].ID] {
			t.Fatalf("%s is there twice", cut[i].ID)
		}
		shown[cut[i].ID] = true
	}
	asks := make(map[string]string)
	latest, leading, need := "", true, int64(0)
	for i := range g.log {
		m := &g.log[i]
		for _, c := range m.ToolCalls {
			asks[c.ID] = m.ID
		}
		if m.Role == abi.RoleUser && m.Visibility == "" {
			latest = m.ID
		}
		leading = leading && m.Role == abi.RoleSystem
		if (leading || m.Pinned) && !shown[m.ID] {
			t.Fatalf("%s is gone", m.ID)
		}
		if call := asks[m.ToolCallID]; m.Role == abi.RoleTool && call != "" && shown[m.ID] != shown[call] {
			t.Fatalf("the pair of %s and %s is split", call, m.ID)
		}
		if shown[m.ID] {
			need += compaction.EstimateMessage(m)
		}
	}
	if latest != "" && !shown[latest] {
		t.Fatalf("the latest user message %s is gone", latest)
	}
	if shown["truncated"] && need > compaction.Estimate(g.log) {
		t.Fatal("the cut made it longer")
	}
}
