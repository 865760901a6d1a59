package agui_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/internal/agui"
	"github.com/mortise-dev/mortise/internal/agui/aguitest"
)

// sent is an event of package serve.
type sent struct{ name, data string }

func (s sent) fields(t *testing.T) (f agui.Fields) {
	t.Helper()
	if err := json.Unmarshal([]byte(s.data), &f); err != nil {
		t.Fatalf("%s: %v", s.data, err)
	}
	return f
}

// plain are events as a client reads them.
func plain(t *testing.T, list []agui.Event) (out []map[string]any) {
	t.Helper()
	data, err := json.Marshal(list)
	if err == nil {
		err = json.Unmarshal(data, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// brief is an event in a few words.
func brief(e map[string]any) string {
	out := fmt.Sprint(e["type"])
	for _, name := range []string{"messageId", "toolCallId", "stepName", "delta", "content", "name", "message"} {
		if v, ok := e[name]; ok && (name != "messageId" || e["type"] != "TOOL_CALL_RESULT") {
			out += fmt.Sprint(" ", v)
		}
	}
	return out
}

const (
	callA     = `{"call":{"id":"a","name":"look"}`
	callWhole = `{"call":{"id":"a","name":"look","arguments":{"x":1}}`
)

// TestTranslator: each sequence becomes that of the protocol.
func TestTranslator(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		in   []sent
		want string
	}{
		"thinking, text and a call": {
			[]sent{
				{"run_started", `{"at":"2026-01-02T03:04:05Z"}`},
				{"step_started", `{"step":1,"message_id":"m"}`},
				{"reasoning_delta", `{"delta":"hm"}`},
				{"text_delta", `{"delta":"I "}`},
				{"text_delta", `{"delta":"look"}`},
				{"tool_call_started", callA + "}"},
				{"tool_call_delta", callA + `,"delta":"{}"}`},
				{"tool_call_ready", callWhole + "}"},
				{"reasoning_encrypted_value", `{"encrypted_value":"s"}`},
				{"tool_result", callWhole + `,"result":{"status":"success","data":{"n":1}}}`},
				{"step_ended", `{}`},
				{"run_ended", `{"outcome":{"usage":{"prompt_tokens":3}}}`},
				{"settled", `{"status":"done","termination":"natural","output":"look"}`},
			},
			`RUN_STARTED
STEP_STARTED step 1
REASONING_START m-reasoning
REASONING_MESSAGE_START m-reasoning
REASONING_MESSAGE_CONTENT m-reasoning hm
REASONING_MESSAGE_END m-reasoning
REASONING_END m-reasoning
TEXT_MESSAGE_START m
TEXT_MESSAGE_CONTENT m I 
TEXT_MESSAGE_CONTENT m look
TEXT_MESSAGE_END m
TOOL_CALL_START a
TOOL_CALL_ARGS a {}
TOOL_CALL_END a
REASONING_ENCRYPTED_VALUE
TOOL_CALL_RESULT a {"n":1}
STEP_FINISHED step 1
CUSTOM mortise.run_ended
RUN_FINISHED`,
		},
		"a call that is not streamed": {
			[]sent{
				{"run_started", `{}`},
				{"step_started", `{"step":2}`},
				{"tool_call_started", callWhole + "}"},
				{"tool_result", callWhole + `,"result":{"status":"error","message":"no"}}`},
				{"settled", `{"termination":"natural"}`},
			},
			`RUN_STARTED
STEP_STARTED step 2
TOOL_CALL_START a
TOOL_CALL_ARGS a {"x":1}
TOOL_CALL_END a
TOOL_CALL_RESULT a no
STEP_FINISHED step 2
RUN_FINISHED`,
		},
		"an answer that begins anew": {
			[]sent{
				{"run_started", `{}`},
				{"step_started", `{"step":1,"message_id":"m"}`},
				{"text_delta", `{"delta":"on"}`},
				{"tool_call_started", callA + "}"},
				{"stream_reset", `{"reason":"overloaded"}`},
				{"text_delta", `{"delta":"one"}`},
				{"settled", `{"error":"it failed"}`},
			},
			`RUN_STARTED
STEP_STARTED step 1
TEXT_MESSAGE_START m
TEXT_MESSAGE_CONTENT m on
TEXT_MESSAGE_END m
TOOL_CALL_START a
TOOL_CALL_END a
CUSTOM mortise.stream_reset
TEXT_MESSAGE_START m-2
TEXT_MESSAGE_CONTENT m-2 one
TEXT_MESSAGE_END m-2
STEP_FINISHED step 1
RUN_ERROR it failed`,
		},
		"a run that asks and continues": {
			[]sent{
				{"run_started", `{}`},
				{"step_started", `{"step":1,"message_id":"m"}`},
				{"tool_call_ready", callWhole + "}"},
				{"tool_waiting", callWhole + "}"},
				{"step_ended", `{}`},
				{"run_waiting", `{"outcome":{"tickets":[{"id":"k","call":{"id":"a"}}]}}`},
				{"compaction_ready", `{}`},
				{"run_started", `{}`},
				{"tool_call_resumed", callWhole + `,"result":{"status":"success","content":[{"type":"text","text":"yes"}]}}`},
				{"settled", `{"termination":"cancelled"}`},
			},
			`RUN_STARTED
STEP_STARTED step 1
TOOL_CALL_START a
TOOL_CALL_ARGS a {"x":1}
TOOL_CALL_END a
CUSTOM mortise.tool_waiting
STEP_FINISHED step 1
RUN_FINISHED
RUN_STARTED
CUSTOM mortise.compaction_ready
TOOL_CALL_RESULT a yes
RUN_FINISHED`,
		},
		"background tasks, another attempt, and a gap": {
			[]sent{
				{"run_started", `{}`},
				{"run_waiting", `{"outcome":{}}`},
				{"run_started", `{}`},
				{"step_started", `{"step":1,"message_id":"m"}`},
				{"text_delta", `{"delta":"a"}`},
				{"attempt_failed", `{"detail":"x"}`},
				{"run_started", `{}`},
				{"step_started", `{"step":1,"message_id":"n"}`},
				{"text_delta", `{"delta":"b"}`},
				{"gap", `{"messages":"/"}`},
				{"text_delta", `{"delta":"c"}`},
				{"step_ended", `{}`},
				{"settled", `{}`},
			},
			`RUN_STARTED
CUSTOM mortise.run_waiting
CUSTOM mortise.run_started
STEP_STARTED step 1
TEXT_MESSAGE_START m
TEXT_MESSAGE_CONTENT m a
CUSTOM mortise.attempt_failed
TEXT_MESSAGE_END m
STEP_FINISHED step 1
CUSTOM mortise.run_started
STEP_STARTED step 1
TEXT_MESSAGE_START n
TEXT_MESSAGE_CONTENT n b
TEXT_MESSAGE_END n
STEP_FINISHED step 1
CUSTOM mortise.gap
TEXT_MESSAGE_START n
TEXT_MESSAGE_CONTENT n c
TEXT_MESSAGE_END n
CUSTOM mortise.step_ended
RUN_FINISHED`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tr := agui.Translator{Thread: "t", Run: "r"}
			var list []agui.Event
			for _, s := range c.in {
				list = append(list, tr.Events(s.name, s.fields(t))...)
			}
			events := plain(t, list)
			var got []string
			for _, e := range events {
				got = append(got, brief(e))
			}
			if got := strings.Join(got, "\n"); got != c.want {
				t.Errorf("the events are\n%s\nwant\n%s", got, c.want)
			}
			if err := aguitest.Verify(events); err != nil {
				t.Error(err)
			}
		})
	}
}

// vocabulary are events of each type.
func vocabulary() []sent {
	list := []sent{
		{"run_started", `{}`},
		{"phase", `{"phase":"tool_gate"}`},
		{"text_delta", `{"delta":"a"}`},
		{"reasoning_delta", `{"delta":"b"}`},
		{"reasoning_encrypted_value", `{"encrypted_value":"s"}`},
		{"stream_reset", `{"reason":"r"}`},
		{"usage", `{}`},
		{"step_ended", `{"messages":3}`},
		{"state_snapshot", `{"snapshot":{"k":1}}`},
		{"state_delta", `{"delta":[{"op":"remove","path":"/k","value":null}]}`},
		{"messages_snapshot", `{"messages":[{"id":"u","role":"user","content":[{"type":"text","text":"hi"}]}]}`},
		{"activity_snapshot", `{"message_id":"act","activity_type":"p","content":{"n":1}}`},
		{"activity_delta", `{"message_id":"act","activity_type":"p","patch":[]}`},
		{"custom", `{"name":"note","by":"plugin","payload":{"n":1}}`},
		{"run_waiting", `{"outcome":{"tickets":[{"id":"k","call":{"id":"a"}}]}}`},
		{"run_waiting", `{"outcome":{}}`},
		{"run_ended", `{"outcome":{}}`},
		{"plugin", `{}`},
		{"attempt_failed", `{"detail":"d"}`},
		{"gap", `{"messages":"/x"}`},
	}
	for i := range 3 {
		list = append(list, sent{"step_started", fmt.Sprintf(`{"step":%d,"message_id":"m%d"}`, i, i)})
		for _, name := range []string{"tool_call_started", "tool_call_delta", "tool_call_ready", "tool_result", "tool_waiting", "tool_call_resumed", "tool_call_cancelled"} {
			list = append(list, sent{name, fmt.Sprintf(`{"call":{"id":"c%d","name":"n","arguments":{"x":%d}},"delta":"d","result":{"status":"success"}}`, i, i)})
		}
	}
	return list
}

// TestTranslator_anyOrder: whatever comes in whatever order, as after lost events, the events can be verified, from the beginning
// and from any point on.
func TestTranslator_anyOrder(t *testing.T) {
	t.Parallel()
	words := vocabulary()
	for seed := range uint64(15) {
		r := rand.New(rand.NewPCG(seed, 1))
		var in []sent
		for range 40 {
			in = append(in, words[r.IntN(len(words))])
		}
		in = append(in, sent{"settled", `{"status":"done","termination":"natural"}`})
		for cut := 0; cut < len(in); cut += 1 + r.IntN(10) {
			tr := agui.Translator{Thread: "t", Run: "r"}
			for _, s := range in[:cut] {
				tr.Events(s.name, s.fields(t))
			}
			list := tr.Resume()
			for _, s := range in[cut:] {
				list = append(list, tr.Events(s.name, s.fields(t))...)
			}
			events := plain(t, list)
			if err := aguitest.Verify(events); err != nil {
				t.Fatalf("seed %d, from event %d on: %v", seed, cut, err)
			}
			if last := events[len(events)-1]; last["type"] != "RUN_FINISHED" {
				t.Fatalf("seed %d, from event %d on: the last event is %v", seed, cut, last)
			}
		}
	}
}

// TestTranslator_lossless: an event without a word in the protocol is there as it was, and one whose word has less brings it along.
func TestTranslator_lossless(t *testing.T) {
	t.Parallel()
	for _, s := range vocabulary() {
		tr := agui.Translator{Thread: "t", Run: "r"}
		tr.Events("run_started", agui.Fields{})
		data, _ := json.Marshal(tr.Events(s.name, s.fields(t)))
		switch s.name {
		case "phase", "usage", "run_ended", "plugin", "attempt_failed", "gap", "tool_result", "tool_waiting", "tool_call_cancelled", "tool_call_resumed", "run_waiting":
			if !strings.Contains(string(data), s.data) {
				t.Errorf("%s: %s is not in %s", s.name, s.data, data)
			}
		}
	}
}
