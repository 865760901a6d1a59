package future_test

import (
	"slices"
	"testing"

	"github.com/mortise-dev/mortise/compaction/eval/future"
)

func TestNeeded(t *testing.T) {
	t.Parallel()
	before := new(talk).user("Look at https://example.org/api/v2 and the gate in src/gate/open.go.").
		bash("git log", "3f9a2c1d7e gate: readGauge uses gauge_limit\norder 48213").agent("It is re-entry safe.")
	for name, tc := range map[string]struct {
		after *talk
		want  []string
	}{
		"a path":                    {new(talk).read("src/gate/open.go"), []string{"src/gate/open.go"}},
		"each kind, in order":       {new(talk).bash("curl https://example.org/api/v2 # 3f9a2c1d7e 48213 readGauge gauge_limit re-entry", ""), []string{"https://example.org/api/v2", "3f9a2c1d7e", "48213", "readGauge", "gauge_limit", "re-entry"}},
		"once":                      {new(talk).read("src/gate/open.go").read("src/gate/open.go"), []string{"src/gate/open.go"}},
		"a new name":                {new(talk).read("src/other.go"), nil},
		"shown by the user":         {new(talk).user("now src/gate/open.go").read("src/gate/open.go"), nil},
		"shown by a tool":           {new(talk).bash("ls", "src/gate/open.go").read("src/gate/open.go"), nil},
		"shown by its own result":   {new(talk).bash("cat src/gate/open.go", "src/gate/open.go"), []string{"src/gate/open.go"}},
		"written in text is no use": {new(talk).agent("I open src/gate/open.go"), nil},
		"in text before the call":   {new(talk).agent("I open src/gate/open.go").read("src/gate/open.go"), []string{"src/gate/open.go"}},
		"everyday words":            {new(talk).bash("look at the gate", ""), nil},
		"names of arguments":        {new(talk).call("Gauge", map[string]any{"gauge_limit": 3}, ""), nil},
		"within a list":             {new(talk).call("Gauge", map[string]any{"names": []any{"readGauge"}}, ""), []string{"readGauge"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for _, f := range future.Needed(before.messages, tc.after.messages) {
				got = append(got, f.Text)
			}
			if !slices.Equal(got, tc.want) {
				t.Errorf("needed %q, want %q", got, tc.want)
			}
		})
	}
}

func TestRecallOfAFact(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		fact, text      string
		strict, lenient bool
	}{
		"the whole path":        {"/repo/src/gate/open.go", "see /repo/src/gate/open.go", true, true},
		"its last two parts":    {"/repo/src/gate/open.go", "see gate/open.go", false, true},
		"its name":              {"/repo/src/gate/open.go", "see open.go", false, true},
		"a name that is short":  {"/repo/src/gate/a.c", "see a.c", false, false},
		"another folder":        {"/repo/src/gate/a.c", "see gate/a.c", false, true},
		"nothing":               {"/repo/src/gate/open.go", "see the gate", false, false},
		"no path, no short one": {"readGauge", "readGaug", false, false},
		"case counts":           {"readGauge", "readgauge", false, false},
	} {
		before := new(talk).user("x " + tc.fact + " x")
		after := new(talk).bash(tc.fact, "")
		needed := future.Needed(before.messages, after.messages)
		if len(needed) != 1 {
			t.Fatalf("%s: %d facts", name, len(needed))
		}
		if s, l := needed[0].Strict(tc.text), needed[0].Lenient(tc.text); s != tc.strict || l != tc.lenient {
			t.Errorf("%s: strict %v, lenient %v, want %v, %v", name, s, l, tc.strict, tc.lenient)
		}
	}
}

func TestFirst(t *testing.T) {
	t.Parallel()
	log := new(talk).say("system", "be brief").user("one").agent("two").user("three").agent("four").user("five").messages
	at := func(n int, summary string, continued bool) future.Compaction {
		return future.Compaction{At: n, Summary: summary, Continued: continued}
	}
	for name, tc := range map[string]struct {
		list          []future.Compaction
		before, after int // -1 for none
	}{
		"none":             {nil, -1, 0},
		"one":              {[]future.Compaction{at(3, "s", true)}, 2, 3},
		"up to the next":   {[]future.Compaction{at(3, "s", true), at(5, "s", true)}, 2, 2},
		"not recorded":     {[]future.Compaction{at(3, "", true), at(5, "s", true)}, -1, 0},
		"nothing after it": {[]future.Compaction{at(3, "s", false)}, -1, 0},
		"only system":      {[]future.Compaction{at(1, "s", true)}, -1, 0},
		"out of bounds":    {[]future.Compaction{at(9, "s", true)}, -1, 0},
	} {
		w, ok := future.First(future.Session{Messages: log, Compactions: tc.list})
		if ok != (tc.before >= 0) || ok && (len(w.Before) != tc.before || len(w.After) != tc.after) {
			t.Errorf("%s: %v, %d before, %d after, want %d and %d", name, ok, len(w.Before), len(w.After), tc.before, tc.after)
		}
	}
}
