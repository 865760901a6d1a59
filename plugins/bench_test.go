package plugins_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/host"
	"github.com/mortise-dev/mortise/host/hosttest"
	"github.com/mortise-dev/mortise/plugins"
)

// BenchmarkOnPhase calls the three guests as a run does, on both engines.
func BenchmarkOnPhase(b *testing.B) {
	output := strings.Repeat("drwxr-xr-x 2 dev dev 4096 Jan 12 10:00 internal/wire\n", 12)
	large := strings.Repeat(output, 160) // 100 KB
	events := map[string]*abi.Event{
		"guard": {Phase: abi.ToolGate, Call: &abi.ToolCall{
			ID: "c1", Name: "bash", Kind: abi.ToolExecute,
			Arguments: map[string]any{"command": "go test ./... 2>&1 | tail -20"},
		}},
		"redact": {
			Phase: abi.AfterToolExecute, Call: &abi.ToolCall{ID: "c1", Name: "bash"}, ResultMessageID: "m1",
			Result:   &abi.ToolResult{Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text(output)}},
			Messages: []abi.Message{{ID: "m1", Role: abi.RoleTool, ToolCallID: "c1", Content: []abi.ContentBlock{abi.Text(output)}}},
		},
		"redact-large": {
			Phase: abi.AfterToolExecute, Call: &abi.ToolCall{ID: "c1", Name: "bash"}, ResultMessageID: "m1",
			Result: &abi.ToolResult{Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text(large)}},
		},
		"index-large": {
			Phase: abi.AfterToolExecute, Call: &abi.ToolCall{ID: "c1", Name: "read", Arguments: map[string]any{"path": "host/pool.go"}},
			Result: &abi.ToolResult{Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text(large)}},
		},
		"index": {
			Phase: abi.AfterToolExecute, Call: &abi.ToolCall{ID: "c1", Name: "read", Arguments: map[string]any{"path": "host/pool.go"}},
			Result: &abi.ToolResult{Status: abi.ToolSuccess, Content: []abi.ContentBlock{abi.Text(output)}},
		},
	}
	for _, engine := range []string{hosttest.Native, hosttest.Extism} {
		for name, event := range events {
			b.Run(engine+"/"+name, func(b *testing.B) {
				h, err := host.New(host.Config{Engine: hosttest.Engine(engine)})
				if err != nil {
					b.Fatal(err)
				}
				defer h.Close(b.Context())
				set, err := plugins.Load(b.Context(), h, []plugins.Entry{{Module: module(strings.TrimSuffix(name, "-large"))}})
				if err != nil {
					b.Fatal(err)
				}
				p := set.Plugins()[0]
				b.ReportAllocs()
				for b.Loop() {
					if _, err := p.OnPhase(b.Context(), event); err != nil {
						b.Fatal(err)
					}
				}
				b.StopTimer()
				b.Logf("%+v", set.Stats())
			})
		}
	}
}
