package cli_test

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/exit"
	"github.com/mortise-dev/mortise/llm/providertest"
)

// collects is a config whose summarizer is gc.
const collects = `
plugins: []
compaction:
  window_tokens: 64000
  threshold_tokens: 6000
  keep_recent_tokens: 1500
  summary_tokens: 800
  summarizer: {policy: gc, limits: {timeout: 60s, init_timeout: 60s}}
  admission: {policy: threshold, config: {high_per_mille: 100, low_per_mille: 100}, quota: {cooldown: 0s, timeout: 60s}}
`

// readings is a session in which files are read, changed and read again.
func readings(t *testing.T) string {
	t.Helper()
	var lines []string
	add := func(m map[string]any) {
		line, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	call := func(id, tool, path, result string) {
		arguments, err := json.Marshal(map[string]any{"path": path})
		if err != nil {
			t.Fatal(err)
		}
		add(map[string]any{"role": "assistant", "content": "", "tool_calls": []any{map[string]any{
			"id": id, "type": "function", "function": map[string]any{"name": tool, "arguments": string(arguments)},
		}}})
		add(map[string]any{"role": "tool", "tool_call_id": id, "content": result})
	}
	file := func(name string) string { return strings.Repeat("the contents of "+name+" go on and on\n", 150) }
	add(map[string]any{"role": "user", "content": "Rename the type in all files."})
	for i := range 5 {
		path := fmt.Sprintf("/srv/app/part%d.go", i)
		call(fmt.Sprintf("r%d", i), "read_file", path, file(path))
		call(fmt.Sprintf("e%d", i), "edit_file", path, "ok")
	}
	add(map[string]any{"role": "assistant", "content": "Renamed everywhere."})
	add(map[string]any{"role": "user", "content": "Now wait."})
	add(map[string]any{"role": "assistant", "content": strings.Repeat("I wait. ", 900)})
	return write(t, "session.jsonl", []byte(strings.Join(lines, "\n")))
}

// TestRun_collects: with the policy gc dead outputs are masked in what the provider is sent, the model reads one by its number,
// compact show names them, and undo brings them back.
func TestRun_collects(t *testing.T) {
	t.Parallel()
	p := newProvider(t, func(q providertest.Query) providertest.Answer {
		if m := last(q); m.Role == abi.RoleUser && strings.HasSuffix(m.Text(), "What was in part0?") {
			return calls("recall", map[string]any{"id": "m3"})
		}
		return said("It is as it was.")
	})
	store := filepath.Join(t.TempDir(), "mortise.db")
	code, r, stderr := run(t, config(t, collects), readings(t), "--store", store)
	if code != exit.OK || r.kinds()["swapped"] == 0 {
		t.Fatalf("exit code %d, %v: %s", code, r.kinds(), stderr)
	}
	for _, c := range r.Compactions {
		if c.Kind == "swapped" && c.Policy != "summarizers/gc" {
			t.Errorf("compacted by %s: %s", c.Policy, c.Reason)
		}
	}
	whole := "the contents of /srv/app/part0.go go on and on\n"
	const mask = "[masked: the file was changed after this in m5. The tool recall shows the output, 7050 bytes, with id m3.]"
	_, text, _ := strings.Cut(collects, "plugins: []")
	text = strings.Replace(text, "threshold_tokens: 6000", "threshold_tokens: 18000", 1) // no other compaction comes meanwhile
	ask := func(prompt string) []providertest.Query {
		before := len(p.queries())
		if code, _, stderr := mortise(t.Context(), "", "run", "-c", p.config(t, text), "--store", store, "--thread", r.Threads[0].ID, prompt); code != exit.OK {
			t.Fatalf("exit code %d: %s", code, stderr)
		}
		return p.queries()[before:]
	}
	q := ask("What was in part0?")
	if got := q[0].Messages[2].Text(); got != mask {
		t.Errorf("the provider was sent %.200q", got)
	}
	if got := last(q[len(q)-1]).Text(); !strings.HasPrefix(got, "[m3 tool]\n"+whole) {
		t.Errorf("recall returned %.200q", got)
	}
	table := must(t, "compact", "show", store)
	if !strings.Contains(table, "read_file /srv/app/part0.go") || !strings.Contains(table, "invalidated") {
		t.Errorf("the masks are missing from\n%s", table)
	}
	for range show(t, store).Threads[0].State.Markers {
		must(t, "compact", "undo", store)
	}
	for line := range strings.SplitSeq(strings.TrimSpace(must(t, "compact", "show", store, "--view")), "\n") {
		if strings.Contains(line, "[masked: ") {
			t.Errorf("after undo the view has %.200s", line)
		}
	}
	q = ask("And now?")
	if got := q[0].Messages[2].Text(); !strings.HasPrefix(got, whole) || len(got) != 7050 {
		t.Errorf("after undo the provider was sent %.200q", got)
	}
	for _, b := range p.Bills() {
		if b.Failed {
			t.Errorf("a request was refused: %+v", b)
		}
	}
}
