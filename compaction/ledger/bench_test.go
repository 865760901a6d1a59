package ledger_test

import (
	"fmt"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction/ledger"
)

// session is a coding session made up of edits, commands and talk, of about 500 bytes a message.
func session(messages int) []abi.Message {
	out := make([]abi.Message, 0, messages)
	say := func(role abi.Role, text string) abi.Message {
		return abi.Message{ID: fmt.Sprint(len(out)), Role: role, Content: []abi.ContentBlock{abi.Text(text)}}
	}
	for i := 0; len(out) < messages; i++ {
		file := fmt.Sprintf("/src/project/internal/part%d/file%d.go", i%17, i%53)
		out = append(out, say(abi.RoleUser, fmt.Sprintf("Please make sure that retryLimit%d in %s is never negative, see #%d.", i%40, file, i)))
		for k, c := range []abi.ToolCall{
			{Name: "read", Arguments: map[string]any{"path": file}},
			{Name: "edit", Arguments: map[string]any{"path": file, "oldText": "func retry() {}", "newText": fmt.Sprintf("func retry%d(limit int) error { return errTooMany%d }", i, i)}},
			{Name: "bash", Arguments: map[string]any{"command": "cd /src/project && go test ./... 2>&1 | tail -20"}},
		} {
			c.ID = fmt.Sprintf("c%d-%d", i, k)
			m := say(abi.RoleAssistant, fmt.Sprintf("The problem is that part%d does not check the limit, because newRetry%d was written before.", i, i))
			m.ToolCalls = []abi.ToolCall{c}
			out = append(out, m)
			r := say(abi.RoleTool, fmt.Sprintf("package part%d\n\nfunc newRetry%d(limit int) *retry { return &retry{limit: limit, store: kv.Open(\"data/%d.db\")} }\n", i, i, i)+
				"ok  \tgithub.com/example/project/internal/part\t0.214s\nok  \tgithub.com/example/project/internal/other\t1.2s\n")
			r.ToolCallID = c.ID
			out = append(out, r)
		}
	}
	return out[:messages]
}

func size(log []abi.Message) (n int64) {
	for i := range log {
		n += int64(len(log[i].Text()))
	}
	return n
}

// BenchmarkAdd keeps the real session of 146k tokens, where it is there, and one that is made up.
func BenchmarkAdd(b *testing.B) {
	bench := func(name string, log []abi.Message) {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(size(log))
			b.ReportAllocs()
			for b.Loop() {
				ledger.New().Add(log...)
			}
		})
	}
	bench("made up, 1,000 messages", session(1000))
	bench("pi, 146k tokens", messagesOf(load(b, shared(b, "transcripts", "pi-mono", "large-session.jsonl"))))
}

// BenchmarkRender renders the same sessions at a twentieth.
func BenchmarkRender(b *testing.B) {
	bench := func(name string, log []abi.Message) {
		l := ledger.New()
		l.Add(log...)
		s := l.State()
		for _, budget := range []int{3000, 16000, 48000} {
			b.Run(fmt.Sprintf("%s, %d bytes", name, budget), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					ledger.Render(&s, budget)
				}
			})
		}
	}
	bench("made up", session(1000))
	bench("pi", messagesOf(load(b, shared(b, "transcripts", "pi-mono", "large-session.jsonl"))))
	bench("a meeting", messagesOf(load(b, shared(b, "transcripts", "qmsum", "committee-val.jsonl"))))
}
