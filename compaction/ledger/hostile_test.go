package ledger_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
)

// quick fails when a ledger of a log takes longer than a machine under load needs, or more memory than is
// promised.
func quick(t *testing.T, name string, log []abi.Message) {
	t.Helper()
	start := time.Now()
	l := ledger.New()
	l.Add(log...)
	s := l.State()
	for _, budget := range []int{300, 5000, 50_000} {
		text := ledger.Render(&s, budget)
		if len(text) > budget || !utf8.ValidString(text) || strings.ContainsAny(text, "\x00\x1b") {
			t.Errorf("%s: %d bytes of %d", name, len(text), budget)
		}
	}
	if took := time.Since(start); took > 20*time.Second {
		t.Errorf("%s: took %v", name, took)
	}
	text, err := json.Marshal(s)
	if err != nil || len(text) > 4<<20 {
		t.Errorf("%s: a state of %d bytes, %v", name, len(text), err)
	}
}

func TestHostileLogs(t *testing.T) {
	t.Parallel()
	wide := strings.Repeat("word_", 200_000)
	binary := strings.Repeat("\x00\xff\xfe\x1b[31m abc_def\n", 20_000)
	quotes := strings.Repeat("“”'\"`$(", 50_000)
	nested := strings.Repeat("[", 100_000)
	var deep any = "x"
	for range 10_000 {
		deep = map[string]any{"k": deep}
	}
	for name, text := range map[string]string{"wide": wide, "binary": binary, "broken": strings.Repeat("\x80", 100_000), "quotes": quotes, "nested": nested, "here-documents": strings.Repeat("<<A\n", 50_000), "colons": strings.Repeat("a:", 200_000)} {
		s := (&story{}).user(text).agent(text).bash(text, text).call("Edit", map[string]any{"file_path": text, "new_string": text}, text).
			call("apply_patch", "*** Begin Patch\n*** Update File: "+text, text).call("other", map[string]any{"a_id": text, "b": deep}, "{\"id\": \""+text+"\"}").call("other", text, text).
			call("TodoWrite", map[string]any{"todos": []any{text, nil, map[string]any{"content": text}}}, text)
		quick(t, name, s.log)
	}
	many := &story{}
	for i := range 30_000 {
		many.edit(fmt.Sprintf("/w/dir%d/file%d.go", i%100, i))
	}
	quick(t, "30,000 files", many.log)
	names := &story{}
	for i := range 60 {
		var b strings.Builder
		for k := range 5000 {
			fmt.Fprintf(&b, "name_%d_%d ", i, k)
		}
		names.bash(fmt.Sprintf("run %d", i), b.String())
	}
	quick(t, "300,000 names", names.log)
	calls := &story{}
	calls.agent("go")
	for i := range 20_000 {
		calls.log[0].ToolCalls = append(calls.log[0].ToolCalls, abi.ToolCall{ID: fmt.Sprint(i), Name: "Bash", Arguments: map[string]any{"command": fmt.Sprintf("cmd%d a && cmd%d b", i, i)}})
	}
	for i := range 20_000 {
		calls.log = append(calls.log, abi.Message{Role: abi.RoleTool, ToolCallID: fmt.Sprint(i), Content: []abi.ContentBlock{abi.Text("Exit code 1\nerror: x")}})
	}
	quick(t, "20,000 calls in one message", calls.log)
	talk := &story{}
	for i := range 5000 {
		talk.user(fmt.Sprintf("Always do number %d before %d. I prefer the value %d instead of the value %d. Is that right?", i, i+1, i*7, i*3))
	}
	quick(t, "5,000 requests", talk.log)
}

func FuzzLedger(f *testing.F) {
	f.Add("Never push.\n- x", "cd /w && sed -i s/a/b/ x.go | tee y.go", "Exit code 1\na.go:1:2: bad", `{"id":"a1","items":[{"item_id":"b2","n":1}]}`)
	f.Add("“”", "cat <<'EOF' > f.go\nEOF", "[main 1234567] x\nOn branch y", "[1,2")
	f.Add(busy().render(4000), "apply_patch <<'EOF'\n*** Begin Patch\n*** Add File: x\n", "ok  \ta", `"\ud83d\ude00\u12"`)
	f.Fuzz(func(t *testing.T, said, command, output, record string) {
		s := (&story{}).user(said).bash(command, output).failed("bash", map[string]any{"command": command}, output).
			call("lookup", record, record).call("apply_patch", said, output).agent(said).user(output)
		state := s.state()
		for _, budget := range []int{130, 700, 6000} {
			text := ledger.Render(&state, budget)
			if len(text) > budget || !utf8.ValidString(text) {
				t.Fatalf("%d bytes of %d: %q", len(text), budget, text)
			}
			if text == "" {
				continue
			}
			old, ok := ledger.ReadBack(text)
			if !ok {
				t.Fatalf("not read back: %q", text)
			}
			if again := ledger.Render(&old, budget); len(again) > budget {
				t.Fatalf("%d bytes of %d", len(again), budget)
			}
			l := ledger.From(old)
			l.Add(s.log...)
		}
	})
}

func FuzzReadBack(f *testing.F) {
	f.Add(busy().render(6000))
	f.Add("State after message m3\n## Files\n- changed in x: a (m1), b (\n- changed\n## Commands\n- m1 `` ok\n## Open\n- stopped earlier: requests m1 mx")
	f.Fuzz(func(t *testing.T, text string) {
		s, ok := ledger.ReadBack(text)
		if !ok {
			return
		}
		if out := ledger.Render(&s, 4000); len(out) > 4000 || !utf8.ValidString(out) {
			t.Fatalf("%q", out)
		}
	})
}
