package proxy_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/proxy/wire"
)

// agent is a client that talks to a model as agents do: it sends the whole conversation each time.
type agent struct {
	t       testing.TB
	proto   wire.Protocol
	url     string
	stream  bool
	items   []string
	tools   []string
	header  []string
	system  string
	think   bool   // manual thinking of Anthropic
	mark    bool   // cache markers as Claude Code puts them
	raw     []byte // of the latest answer
	status  int
	sent    string
	noReply bool // the answer is not taken into the conversation
	lite    bool // tools come in an item, as Codex sends them to newer models
}

func newAgent(tb testing.TB, proto wire.Protocol, url string, stream bool, header ...string) *agent {
	tb.Helper()
	return &agent{t: tb, proto: proto, url: url, stream: stream, header: header, tools: []string{"bash", "read"}, system: "You are an agent."}
}

func (a *agent) path() string {
	switch a.proto {
	case wire.Messages:
		return "/v1/messages"
	case wire.Responses:
		return "/v1/responses"
	case wire.Chat:
	}
	return "/v1/chat/completions"
}

func quote(s string) string {
	b, _ := json.Marshal(s)
	return string(b)
}

func (a *agent) say(text string) {
	switch a.proto {
	case wire.Messages:
		a.items = append(a.items, `{"role":"user","content":[{"type":"text","text":`+quote(text)+`}]}`)
	case wire.Responses:
		a.items = append(a.items, `{"type":"message","role":"user","content":[{"type":"input_text","text":`+quote(text)+`}]}`)
	default:
		a.items = append(a.items, `{"role":"user","content":`+quote(text)+`}`)
	}
}

func (a *agent) body() string {
	const schema = `{"type":"object","properties":{"command":{"type":"string"}}}`
	var tools []string
	for _, n := range a.tools {
		switch a.proto {
		case wire.Messages:
			tools = append(tools, `{"name":"`+n+`","description":"d","input_schema":`+schema+`}`)
		case wire.Responses:
			tools = append(tools, `{"type":"function","name":"`+n+`","description":"d","parameters":`+schema+`,"strict":false}`)
		default:
			tools = append(tools, `{"type":"function","function":{"name":"`+n+`","description":"d","parameters":`+schema+`}}`)
		}
	}
	list, toolList := strings.Join(a.marked(), ","), strings.Join(tools, ",")
	switch a.proto {
	case wire.Messages:
		system, thinking := quote(a.system), ""
		if a.think {
			thinking = `,"thinking":{"type":"enabled","budget_tokens":2000}`
		}
		if a.mark {
			system = `[{"type":"text","text":` + system + `,"cache_control":{"type":"ephemeral"}}]`
		}
		return fmt.Sprintf(`{"model":"claude-sonnet-4-5","messages":[%s],"system":%s,"tools":[%s],"max_tokens":3000,"stream":%t%s}`, list, system, toolList, a.stream, thinking)
	case wire.Responses:
		if a.lite {
			item := `{"type":"additional_tools","id":"at_1","role":"developer","tools":[{"type":"namespace","name":"functions","description":"","tools":[` + toolList + `]}]}`
			return fmt.Sprintf(`{"model":"gpt-5","input":[%s,%s],"store":false,"include":["reasoning.encrypted_content"],"stream":%t}`, item, list, a.stream)
		}
		return fmt.Sprintf(`{"model":"gpt-5","instructions":%s,"input":[%s],"tools":[%s],"store":false,"include":["reasoning.encrypted_content"],"stream":%t}`,
			quote(a.system), list, toolList, a.stream)
	case wire.Chat:
	}
	options := "" // of Chat
	if a.stream {
		options = `,"stream_options":{"include_usage":true}`
	}
	return fmt.Sprintf(`{"model":"gpt-5","messages":[{"role":"system","content":%s},%s],"tools":[%s],"stream":%t%s}`, quote(a.system), list, toolList, a.stream, options)
}

// marked are the items with a marker on the last block.
func (a *agent) marked() []string {
	if !a.mark || a.proto != wire.Messages || len(a.items) == 0 {
		return a.items
	}
	out := append([]string(nil), a.items...)
	last := out[len(out)-1]
	at := strings.LastIndex(last, "}]}")
	out[len(out)-1] = last[:at] + `,"cache_control":{"type":"ephemeral"}` + last[at:]
	return out
}

// step sends the conversation and takes the answer into it.
func (a *agent) step() *wire.Answer {
	a.t.Helper()
	a.sent = a.body()
	resp, raw := post(a.t, a.url+a.path(), a.sent, a.header...)
	a.raw, a.status = raw, resp.StatusCode
	if resp.StatusCode != http.StatusOK {
		a.t.Fatalf("%s: status %d: %s\nrequest: %.1500s", a.proto, resp.StatusCode, raw, a.sent)
	}
	ans := a.read(raw)
	if !ans.Done || ans.Failed {
		a.t.Fatalf("%s: the answer has no end: %s", a.proto, raw)
	}
	a.checkEvents(raw)
	if !a.noReply {
		for _, it := range ans.Items(func(*wire.Out) bool { return true }) {
			a.items = append(a.items, string(it))
		}
	}
	return ans
}

func (a *agent) read(raw []byte) *wire.Answer {
	if !a.stream {
		ans, err := wire.ParseAnswer(a.proto, raw)
		if err != nil {
			a.t.Fatal(err)
		}
		return ans
	}
	var s wire.Splitter
	_, _ = s.Write(raw)
	st := wire.NewStream(a.proto)
	for {
		e, ok := s.Next()
		if !ok {
			return &st.Answer
		}
		st.Event(e)
	}
}

// checkEvents checks what clients rely on: indices without gaps, numbers that grow, one end.
func (a *agent) checkEvents(raw []byte) {
	a.t.Helper()
	if !a.stream {
		return
	}
	next, seq, ends := 0, -1, 0
	var s wire.Splitter
	_, _ = s.Write(raw)
	for {
		e, ok := s.Next()
		if !ok {
			break
		}
		if len(e.Data) == 0 || string(e.Data) == "[DONE]" {
			if string(e.Data) == "[DONE]" {
				ends++
			}
			continue
		}
		m := decode(a.t, e.Data)
		switch m["type"] {
		case "content_block_start", "response.output_item.added":
			i, _ := m["index"].(float64)
			if m["type"] == "response.output_item.added" {
				i, _ = m["output_index"].(float64)
			}
			if int(i) != next {
				a.t.Fatalf("block %d comes where %d is next:\n%s", int(i), next, raw)
			}
			next++
		case "message_start", "response.created":
			if next > 0 {
				a.t.Fatalf("the answer begins twice:\n%s", raw)
			}
		case "message_stop", "response.completed":
			ends++
		}
		if n, ok := m["sequence_number"].(float64); ok {
			if int(n) != seq+1 {
				a.t.Fatalf("event %d comes behind %d:\n%s", int(n), seq, raw)
			}
			seq = int(n)
		}
	}
	if ends != 1 {
		a.t.Fatalf("the answer has %d ends:\n%s", ends, raw)
	}
}

// answer adds results of all calls of an answer.
func (a *agent) answer(ans *wire.Answer, text func(c wire.Out) string) {
	var blocks []string
	for _, c := range ans.Calls() {
		r := string(wire.ResultBlock(a.proto, &c, text(c), false))
		if a.proto == wire.Messages {
			blocks = append(blocks, r)
		} else {
			a.items = append(a.items, r)
		}
	}
	if len(blocks) > 0 {
		a.items = append(a.items, `{"role":"user","content":[`+strings.Join(blocks, ",")+`]}`)
	}
}

// each runs a test for all protocols, streamed and whole.
func each(t *testing.T, run func(t *testing.T, p wire.Protocol, stream bool)) {
	t.Helper()
	for _, p := range []wire.Protocol{wire.Messages, wire.Responses, wire.Chat} {
		for _, stream := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s/stream=%t", p, stream), func(t *testing.T) {
				t.Parallel()
				run(t, p, stream)
			})
		}
	}
}

func contains(b []byte, s string) bool { return bytes.Contains(b, []byte(s)) }
