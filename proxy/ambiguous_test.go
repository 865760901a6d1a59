package proxy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/proxy"
	"github.com/mortise-dev/mortise/proxy/wire"
)

// What plugins cannot read as the client does is blocked: arguments that some clients repair, or whose names some take in any case.
func TestCalls_ambiguous(t *testing.T) {
	t.Parallel()
	careless := gate(func(c *abi.ToolCall) *abi.Reply {
		if args, ok := c.Arguments.(map[string]any); ok && strings.Contains(fmt.Sprint(args["command"]), "rm -rf") {
			return block("never")
		}
		return nil
	})
	const hello = `{"model":"m","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"bash","parameters":{"type":"object","properties":{"command":{},"Mode":{},"mode":{}}}}}]}`
	for args, passes := range map[string]bool{
		`{"command":"ls","mode":1,"Mode":2,"other":{"COMMAND":1}}`: true, ``: true,
		`{"command":"rm -rf /"`: false, "{\"command\":\"rm -rf /\n\"}": false, `{"command":"rm -rf \/\d"}`: false, `{"command":"rm -rf /"} x`: false,
		`{"command":"rm -rf /","command":"ls"}`: false, `{"Command":"rm -rf /"}`: false, `{"command":"ls","COMMAND":"rm -rf /"}`: false,
	} {
		answer := fmt.Sprintf(`{"id":"c","choices":[{"index":0,"message":{"role":"assistant","content":"so","tool_calls":[{"id":"a","type":"function","function":{"name":"bash","arguments":%s}}]},"finish_reason":"tool_calls"}]}`, wire.Quote(args))
		s := start(t, sends(t, "application/json", answer).URL, proxy.Config{Runtime: runtimeOf(t, careless)})
		_, got := post(t, s.url+"/v1/chat/completions", hello)
		if bytes.Contains(got, []byte(`"arguments"`)) != passes {
			t.Errorf("%s: %s", args, got)
		}
	}
}

// The model gets the refusal of a call whose arguments are no JSON in a body that is JSON, at once and in later requests.
func TestCalls_ambiguousStream(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"{\"command\":\"rm -rf /\n\"}", `{"command":nul}`, `{"command":"rm`} {
		first := events(begunMessage, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","name":"bash","input":{}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":`+string(wire.Quote(args))+`}}`,
			`{"type":"content_block_stop","index":0}`, endedMessage, `{"type":"message_stop"}`)
		last := events(begunMessage, `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"sorry"}}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":5}}`, `{"type":"message_stop"}`)
		var asked int
		up := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", sseType)
			asked++
			_, _ = io.WriteString(w, map[bool]string{true: first, false: last}[asked == 1])
		})
		s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, noRm())})
		_, got := post(t, s.url+"/v1/messages", hello)
		sent, _ := up.last()
		if asked != 2 || !json.Valid(sent) || !contains(sent, "arguments are no JSON") && !contains(sent, "never") || !contains(got, "sorry") {
			t.Errorf("%s: asked %d times: %s: %s", args, asked, sent, got)
		}
		post(t, s.url+"/v1/messages", strings.Replace(hello, `]`, `,{"role":"assistant","content":[{"type":"text","text":"sorry"}]},{"role":"user","content":"go on"}]`, 1))
		if sent, _ := up.last(); !json.Valid(sent) || !contains(sent, `"tool_use_id":"a"`) {
			t.Errorf("%s: later %s", args, sent)
		}
	}
}
