package compaction_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// TestLedger_properties compacts sessions as they grow, with the default policy: random talk and
// the repository's own session. No view grows, pairs stay whole, quotations are in the log, and undo restores each view.
func TestLedger_properties(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	for seed := range uint64(8) {
		g := newTalk(seed)
		for range 12 {
			g.on(8)
			g.say(user("", fmt.Sprintf("Never touch pkg/part%d.go:\n## “quoted” %d\n- a line of its own, please.", g.n, g.n)))
			g.say(assistant("", fmt.Sprintf("I found that the cause is\nparse_%d; I decided to leave it. Should I go on with step %d?", g.n, g.n)))
		}
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			grows(t, g.log, 10)
		})
	}
	t.Run("review", func(t *testing.T) {
		t.Parallel()
		grows(t, session(t, filepath.Join("..", "examples", "sessions", "review.jsonl")), 10)
	})
}

// TestLedger_realSessions is the same for real sessions, where they are.
func TestLedger_realSessions(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "shared")
	}
	list, err := filepath.Glob(filepath.Join(dir, "data", "transcripts", "claude-code-compactions", "*.jsonl"))
	if err != nil || len(list) == 0 {
		testskip.Skip(t, "no real sessions; set MORTISE_SHARED to the folder that holds data/")
	}
	for _, path := range list[:min(len(list), 6)] {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			grows(t, session(t, path), 4)
		})
	}
}

// session reads a recording; each message has an id.
func session(t *testing.T, path string) []abi.Message {
	t.Helper()
	f, err := transcript.Open(path, transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	log := f.Conversations[0].Messages()
	for i := range log {
		log[i].ID = fmt.Sprintf("m%d", i)
	}
	return log
}

// grows compacts a log at n places and checks each view; then it takes all compactions back.
func grows(t *testing.T, log []abi.Message, n int) {
	t.Helper()
	d := newDesk()
	c := d.at(t, nil, func(cfg *compaction.Config) {
		cfg.Policy = compaction.Policy{
			WindowTokens: 1 << 30, ReserveTokens: 1, ThresholdTokens: 20_000, KeepRecentTokens: 400, MinRangeTokens: 400, SummaryTokens: 1500, MinSavingsRatio: .05,
		}
		cfg.Quota = compaction.Quota{Cooldown: 1}
	})
	var views []string
	for i := 1; i <= n; i++ {
		part := log[:len(log)*i/n]
		before := c.View(thread, part)
		c.Request(thread, "")
		c.Consider(t.Context(), thread, part)
		had := c.Total(thread)
		consume(t, c, part, d.run())
		d.pass(time.Hour)
		view := c.View(thread, part)
		checkView(t, part, view, newest(c))
		if c.Total(thread) == had {
			continue
		}
		views = append(views, written(t, before))
		if m := newest(c); m.PostTokens >= m.PreTokens || compaction.Estimate(view) >= compaction.Estimate(before) {
			t.Errorf("the view grew from %d to %d tokens", m.PreTokens, m.PostTokens)
		}
		invented(t, part, newest(c).Summary)
	}
	if len(views) == 0 {
		t.Fatalf("nothing was compacted: %+v", d.last(t))
	}
	// Each undo restores the view of the log as it was then, byte for byte.
	for i := len(views) - 1; i >= 0; i-- {
		markers := c.Markers(thread)
		if len(markers) != i+1 || !c.Undo(thread) {
			t.Fatalf("%d markers, want %d", len(markers), i+1)
		}
		for j := 1; j <= n; j++ {
			if part := log[:len(log)*j/n]; written(t, c.View(thread, part)) == views[i] {
				views[i] = ""
				break
			}
		}
		if views[i] != "" {
			t.Errorf("undo %d does not restore the view", i)
		}
	}
	if written(t, c.View(thread, log)) != written(t, log) {
		t.Error("without markers the view is not the log")
	}
}

func written(t *testing.T, list []abi.Message) string {
	t.Helper()
	data, err := json.Marshal(list)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// quotations are at the ends of lines, or before what became of them. A quotation may hold marks of its own.
var quotation = regexp.MustCompile(`(?m)“((?s:.*?))”(?: …(?: \(\d+ characters\))?)?(?:$| →|, to |\))`)

// invented checks that what a summary quotes is in the log, but for the indentation of its lines.
func invented(t *testing.T, log []abi.Message, summary string) {
	t.Helper()
	var all strings.Builder
	for i := range log {
		all.WriteString(strings.ToValidUTF8(log[i].Text(), "?") + "\n")
		for _, call := range log[i].ToolCalls { // what was looked up
			fmt.Fprintln(&all, call.Arguments)
		}
	}
	text, n := all.String(), 0
	for _, q := range quotation.FindAllStringSubmatch(summary, -1) {
		n++
		if plain := strings.ReplaceAll(q[1], "\n    ", "\n"); !strings.Contains(text, plain) {
			t.Errorf("the log does not hold %q", plain)
		}
	}
	if n == 0 {
		t.Errorf("nothing is quoted in\n%s", summary)
	}
}
