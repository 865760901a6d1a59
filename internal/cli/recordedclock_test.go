package cli_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// recordedAt is a session of Claude Code whose steps are so far apart, without times for 0.
func recordedAt(apart time.Duration) string {
	var b strings.Builder
	at := time.Date(2026, 3, 4, 5, 6, 7, 0, time.UTC)
	add := func(id, kind, message string) {
		stamp := ""
		if apart > 0 {
			stamp = fmt.Sprintf(`"timestamp":%q,`, at.Format(time.RFC3339Nano))
		}
		fmt.Fprintf(&b, `{"type":%q,"uuid":%q,"sessionId":"s1",%s"message":%s}`+"\n", kind, id, stamp, message)
		at = at.Add(apart)
	}
	for i := range 120 {
		id := fmt.Sprint(i)
		if i%10 == 0 {
			add("u"+id, "user", fmt.Sprintf(`{"role":"user","content":"Look at part %d of the report."}`, i))
		}
		add("a"+id, "assistant", fmt.Sprintf(`{"role":"assistant","id":"x%d","content":[{"type":"tool_use","id":"t%d","name":"Bash","input":{"command":"cat part/%d.txt"}}]}`, i, i, i))
		add("r"+id, "user", fmt.Sprintf(`{"role":"user","content":[{"type":"tool_result","tool_use_id":"t%d","content":%q}]}`, i, strings.Repeat(fmt.Sprintf("line %d of the part; ", i), 60)))
		if i%10 == 9 {
			add("e"+id, "assistant", `{"role":"assistant","id":"y`+id+`","content":[{"type":"text","text":"That part is fine."}]}`)
		}
	}
	return b.String()
}

// TestReplayClock: the cooldown of a replay is by the clock of the recording. A session of hours is compacted whenever it
// has grown enough, and never cut; one of seconds is compacted once, and refused for the cooldown.
func TestReplayClock(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		apart           time.Duration
		admission       string
		least, cooldown int
	}{
		"hours":            {2 * time.Minute, "{}", 3, 0},
		"hours, by quota":  {2 * time.Minute, "{policy: quota}", 3, 0},
		"seconds":          {10 * time.Millisecond, "{}", 1, 1},
		"seconds, by cost": {10 * time.Millisecond, "{policy: cost}", 1, 1},
		"no times":         {0, "{}", 3, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.admission != "{}" {
				testskip.Long(t)
			}
			code, r, stderr := run(t, config(t, `
compaction:
  window_tokens: 32000
  threshold_tokens: 8000
  keep_recent_tokens: 2000
  summary_tokens: 1000
  summarizer: {policy: ledger}
  admission: `+tc.admission+"\n"), write(t, "s.jsonl", []byte(recordedAt(tc.apart))), "--pace", "2ms")
			if code != exit.OK {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			cooldown := 0
			for _, a := range r.Admissions {
				if a.Decision.Reason == abi.ReasonCooldown {
					cooldown++
				}
			}
			if n := r.kinds()["swapped"]; n < tc.least || tc.cooldown == 1 && n > 1 || (cooldown > 0) != (tc.cooldown > 0) {
				t.Errorf("compactions %v, %d refusals for the cooldown: %+v", r.kinds(), cooldown, r.Admissions)
			}
			if r.kinds()["fallback"] > 0 && tc.cooldown == 0 {
				t.Errorf("the view was cut: %v", r.kinds())
			}
		})
	}
}
