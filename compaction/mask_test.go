package compaction_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// shelf keeps outputs for a test.
type shelf struct {
	texts []string
	full  bool
}

func (s *shelf) keep(_, label, text string) (string, error) {
	if s.full {
		return "", errors.New("no space left")
	}
	s.texts = append(s.texts, text)
	return fmt.Sprintf("%s-%d", label, len(s.texts)), nil
}

// masking is a compactor with room for everything.
func masking(tb testing.TB, s *shelf, change func(*compaction.Policy)) *compaction.Compactor {
	tb.Helper()
	return newDesk().at(tb, says("short"), func(cfg *compaction.Config) {
		cfg.Keep = s.keep
		cfg.Policy = compaction.Policy{WindowTokens: 1 << 30, ReserveTokens: 1, MaskTokens: 500}
		if change != nil {
			change(&cfg.Policy)
		}
	})
}

func TestMask(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("0123456789 line\n", 200)
	s := &shelf{}
	c := masking(t, s, nil)
	log := []abi.Message{
		user("u", long), calls("m", "c", "d", "e"), result("r", "c", long), result("r2", "d", "short"), pinned(result("r3", "e", long)),
		calls("m2", "f"), result("r4", "f", long),
	}
	whole, err := json.Marshal(log)
	if err != nil {
		t.Fatal(err)
	}
	view := c.View(thread, log)
	for i := range view {
		if masked := view[i].ID == "r"; masked == reflect.DeepEqual(view[i], log[i]) {
			t.Errorf("%s: masked %v: %.60q", view[i].ID, masked, view[i].Text())
		}
	}
	want := strings.Repeat("0123456789 line\n", 24) + fmt.Sprintf("\n\n[Content compacted: original ~%d tokens, showing first 384 chars]", compaction.Estimate(log[2:3])-4)
	if got := view[2].Text(); !strings.HasPrefix(got, want) || !strings.Contains(got, "stored as shell-1; read it with the tool `read_output`") || s.texts[0] != long {
		t.Errorf("shown is %q", got)
	}
	if c.Tokens(thread, view) != compaction.Estimate(view) {
		t.Error("the masked view is not weighed as it is")
	}
	if c.Tokens(thread, log) != compaction.Estimate(log) {
		t.Error("the log is weighed as if it were masked")
	}
	// The newest output is masked when the model has read it; the first stays as it is.
	log = append(log, assistant("a", "I have read it"))
	again := c.View(thread, log)
	if !reflect.DeepEqual(again[2], view[2]) || len(again[6].Text()) > 700 || len(s.texts) != 2 || view[6].Text() != long {
		t.Errorf("%d were put aside, the newest is %.60q", len(s.texts), again[6].Text())
	}
	if got, err := json.Marshal(log[:7]); err != nil || !bytes.Equal(got, whole) {
		t.Error("the log was changed")
	}
	// A log that is read again is shown as before.
	if copied := c.View(thread, append([]abi.Message(nil), log...)); !reflect.DeepEqual(copied, again) || len(s.texts) != 2 {
		t.Errorf("%d were put aside", len(s.texts))
	}
}

func TestMaskLimits(t *testing.T) {
	t.Parallel()
	output := func(text string) []abi.Message {
		return []abi.Message{calls("m", "c"), result("r", "c", text), assistant("a", "x")}
	}
	dense := func(tokens int) string { return strings.Repeat("a ", tokens) }
	for _, tc := range []struct {
		name   string
		log    []abi.Message
		change func(*compaction.Policy)
		full   bool
		shown  int // characters, 0 when it is not masked
	}{
		{name: "just under the threshold", log: output(dense(495))},
		{name: "at the threshold", log: output(dense(501)), shown: 1002},
		{name: "by characters", log: output(strings.Repeat("語 ", 3000)), shown: 1600},
		{name: "by lines", log: output(strings.Repeat("\n", 30) + dense(600)), shown: 24},
		{name: "no characters", log: output(strings.Repeat("\x80", 3000)), shown: 1600},
		{name: "a tool that is never masked", log: output(dense(600)), change: func(p *compaction.Policy) { p.NeverMask = []string{"shell"} }},
		{name: "no space", log: output(dense(600)), full: true},
		{name: "not a tool", log: []abi.Message{assistant("b", dense(600)), assistant("a", "x")}},
		{name: "no call", log: []abi.Message{result("r", "z", dense(600)), assistant("a", "x")}, shown: 1200},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			view := masking(t, &shelf{full: tc.full}, tc.change).View(thread, tc.log)
			masked := !reflect.DeepEqual(view, tc.log)
			if masked != (tc.shown > 0) {
				t.Fatalf("masked %v: %.200q", masked, view[1].Text())
			}
			at := len(view) - 2
			if want := fmt.Sprintf("showing first %d chars]", tc.shown); masked && !strings.Contains(view[at].Text(), want) {
				t.Errorf("want %s, shown is %q", want, view[at].Text()[max(0, len(view[at].Text())-220):])
			}
		})
	}
}

// Masked or not: over random conversations the view holds what it must, and is
// weighed as it is; undo brings back the view byte for byte.
func TestMaskProperties(t *testing.T) {
	t.Parallel()
	for seed := range uint64(testskip.Rounds(10, 2)) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			g, d, s := newTalk(seed), newDesk(), &shelf{}
			c := d.at(t, says("short"), func(cfg *compaction.Config) {
				cfg.Keep = s.keep
				cfg.Policy = compaction.Policy{
					WindowTokens: 1 << 30, ReserveTokens: 1, ThresholdTokens: 1500, KeepRecentTokens: 300, MinRangeTokens: 300,
					SummaryTokens: 50, MaskTokens: 40,
				}
			})
			swaps := 0
			for range 12 {
				g.on(15)
				g.long(t)
				before := c.View(thread, g.log)
				if c.Consider(t.Context(), thread, g.log) {
					notices := d.run()
					consume(t, c, g.log, notices)
				}
				e := d.last(t)
				if after := c.View(thread, g.log); c.Total(thread) > swaps {
					if c.Tokens(thread, after) >= c.Tokens(thread, before) {
						t.Fatal("the view grew")
					}
					if e.PreTokens != compaction.Estimate(before) || e.PostTokens != compaction.Estimate(after) || e.ViewMessages != len(after) {
						t.Fatalf("told %+v of %d and %d tokens", e, compaction.Estimate(before), compaction.Estimate(after))
					}
					c.Undo(thread)
					if !reflect.DeepEqual(c.View(thread, g.log), before) {
						t.Fatal("undo did not restore the view")
					}
					c.Request(thread, "") // an undo holds the next one back
					c.Consider(t.Context(), thread, g.log)
					consume(t, c, g.log, d.run())
					swaps = c.Total(thread)
				}
				view := c.View(thread, g.log)
				if got, want := c.Tokens(thread, view), compaction.Estimate(view); got != want {
					t.Fatalf("%d tokens, want %d", got, want)
				}
				checkView(t, g.log, unmasked(g.log, view), newest(c))
			}
			if swaps == 0 || len(s.texts) == 0 {
				t.Errorf("%d swaps, %d outputs put aside", swaps, len(s.texts))
			}
		})
	}
}

// long adds a round with a long output.
func (g *talk) long(t *testing.T) {
	t.Helper()
	g.say(calls("", fmt.Sprintf("long%d", g.n)))
	g.say(result("", fmt.Sprintf("long%d", g.n-1), words(2000)))
}

// unmasked puts the messages of the log back into a view.
func unmasked(log, view []abi.Message) []abi.Message {
	place := make(map[string]int)
	for i := range log {
		place[log[i].ID] = i
	}
	out := make([]abi.Message, len(view))
	for i := range view {
		out[i] = view[i]
		if at, ok := place[view[i].ID]; ok && view[i].Role == abi.RoleTool && !view[i].Pinned {
			out[i] = log[at]
		}
	}
	return out
}
