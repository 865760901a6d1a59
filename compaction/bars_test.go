package compaction_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
)

// Each kind has its own bar, and the gate names the one that was missed.
func TestBars(t *testing.T) {
	t.Parallel()
	previous := "## Goal\nx\n## Next\ny"
	log := filler()
	log[1] = assistant("a0", "see https://example.org/a and cmd/mortise/main.go, cmd/mortise/main.go: runStep runStep 12,800 12,800\nrun.go: Error: undefined runner")
	log[1].ToolCalls = []abi.ToolCall{{ID: "c", Name: "edit", Arguments: map[string]any{"path": "edited.go"}}}
	log[3].Pinned = true
	for name, bars := range map[string]compaction.Bars{
		"paths": {Paths: 1}, "urls": {URLs: 1}, "identifiers": {Identifiers: 1}, "numbers": {Numbers: 1}, "errors": {Errors: 1}, "": {Files: 1, Pins: 1, Structure: 1},
	} {
		d := newDesk()
		c := d.at(t, says("all went well"), func(cfg *compaction.Config) { cfg.Policy.Bars = bars })
		c.Consider(t.Context(), thread, log)
		consume(t, c, log, d.run())
		e := d.last(t)
		if name == "" {
			if e.Kind != compaction.EventSwapped || e.Quality.Files != (compaction.Survival{Total: 1, Kept: 1}) || e.Quality.Pins != (compaction.Survival{Total: 1, Kept: 1}) {
				t.Errorf("what the host keeps itself was refused: %s, %+v", e.Reason, e.Quality)
			}
			continue
		}
		if e.Kind != compaction.EventRefused || !strings.HasPrefix(e.Reason, "bars."+name+": 0 of ") {
			t.Errorf("%s: told %s: %s", name, e.Kind, e.Reason)
		}
	}
	s := compaction.NewScorer()
	for summary, kept := range map[string]int{"## Goal\nz\n## Next": 2, "text\n  ## Next  \n": 1, "Goal Next": 0} {
		if q := s.Score(log, &previous, summary); q.Structure != (compaction.Survival{Total: 2, Kept: kept}) {
			t.Errorf("%q: %+v", summary, q.Structure)
		}
	}
	if q := s.Score(log, nil, "edited.go and ack"); q.Files.Kept != 1 || q.Pins.Kept != 1 || q.Structure.Total != 0 {
		t.Errorf("%+v", q)
	}
	out, err := json.Marshal(s.Score(log, &previous, "x"))
	if err != nil || !strings.Contains(string(out), `"files":{"total":1,"kept":0},"pins":{"total":1,"kept":0},"structure":{"total":2,"kept":0}`) {
		t.Errorf("%s (%v)", out, err)
	}
	for _, wrong := range []compaction.Bars{{Paths: -0.1}, {Structure: 1.1}} {
		if _, err := compaction.New(compaction.Config{Policy: compaction.Policy{Bars: wrong}, Summarizer: says("x"), Spawn: newDesk().spawn}); err == nil {
			t.Errorf("%+v was accepted", wrong)
		}
	}
}
