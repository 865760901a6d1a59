package wire_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/proxy/wire"
)

func bodies() []string {
	return []string{
		`{"model":"m","messages":[{"role":"user","content":"hi"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"x"},{"type":"tool_use","id":"a","name":"n","input":{"x":1.0e4}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"t"}],"cache_control":{"type":"ephemeral"}}]}],"tools":[{"name":"n","input_schema":{"type":"object"}}],"stream":true}`,
		`{"model":"m","input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"x"}]},{"type":"function_call","call_id":"c","name":"n","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"o"}]}`,
		`{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"n","arguments":"{\"a\":\"\\\\\"}"}}],"content":null},{"role":"tool","tool_call_id":"a","content":"r"}]}`,
		`{"a":"\\"}`, `{}`, `[`, `{"messages":[{}]}`, `{"messages":[],"messages":[]}`, ` {"model" : "x" , "input" : "s" } `, "{\"a\":\"\\u00e9\\ud83d\"}",
	}
}

// Hostile bodies never panic; what is parsed has places within the body, and the edits keep it JSON.
func FuzzParse(f *testing.F) {
	for _, b := range bodies() {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for _, p := range []wire.Protocol{wire.Messages, wire.Responses, wire.Chat} {
			r, err := wire.Parse(p, body)
			if err != nil {
				continue
			}
			valid := json.Valid(body)
			for i := range r.Items {
				r.Digest(i)
				r.Canonical(i)
				r.Convert(i)
				r.Key(i)
			}
			r.Integrity()
			r.Marks()
			r.SystemText()
			if !valid || r.Text { // a string is no element of a list
				continue
			}
			for _, it := range r.Items {
				if out := wire.Apply(body, []wire.Splice{wire.Cut(body, it.Span)}); !json.Valid(out) {
					t.Fatalf("%s: cut of %v: %s", p, it.Span, out)
				}
				for _, b := range it.Blocks {
					if b.Mark.Exists() {
						if out := wire.Apply(body, []wire.Splice{wire.Cut(body, b.Mark)}); !json.Valid(out) {
							t.Fatalf("%s: cut of a marker: %s", p, out)
						}
					}
				}
			}
			if out := wire.Apply(body, []wire.Splice{wire.Set(body, "stream", []byte("true"))}); !json.Valid(out) {
				t.Fatalf("%s: set: %s", p, out)
			}
			if r.List.Exists() && body[r.List.From] == '[' {
				if out := wire.Apply(body, []wire.Splice{wire.Append(body, r.List, []byte(`{"a":1}`))}); !json.Valid(out) {
					t.Fatalf("%s: append: %s", p, out)
				}
			}
		}
	})
}

// Events are the same however the bytes of a stream arrive, and together they are the stream.
func FuzzSplitter(f *testing.F) {
	for _, s := range []string{
		"event: a\ndata: {\"type\":\"message_start\"}\n\n: comment\n\ndata: x\r\ndata: y\r\n\r\ndata: z\r\r", "data: a\n\n\n\n", "\r\n\r\n", "data: [DONE]\n\n",
	} {
		f.Add([]byte(s), uint8(3))
	}
	f.Fuzz(func(t *testing.T, stream []byte, n uint8) {
		read := func(size int) (all []byte, count int) {
			var s wire.Splitter
			st := wire.NewStream(wire.Messages)
			for rest := stream; len(rest) > 0; {
				k := min(size, len(rest))
				_, _ = s.Write(rest[:k])
				rest = rest[k:]
				for {
					e, ok := s.Next()
					if !ok {
						break
					}
					st.Event(e)
					all = append(all, e.Raw...)
					count++
				}
			}
			return append(all, s.Rest()...), count
		}
		whole, _ := read(len(stream) + 1)
		pieces, _ := read(int(n%7) + 1)
		if !bytes.Equal(whole, stream) || !bytes.Equal(pieces, stream) {
			t.Fatalf("%q became %q and %q", stream, whole, pieces)
		}
	})
}

// Answers of any bytes do not panic, streamed or whole.
func FuzzAnswer(f *testing.F) {
	for _, s := range []string{
		`{"type":"message_start","message":{"id":"x","usage":{"input_tokens":3}}}`, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"a","input":{}}}`,
		`{"type":"content_block_stop","index":0}`, `{"choices":[{"delta":{"tool_calls":[{"index":0,"id":"x","function":{"name":"n","arguments":"{"}}]},"finish_reason":"tool_calls"}]}`,
		`{"type":"response.output_item.done","output_index":0,"item":{"type":"function_call","arguments":"{}"}}`, `{"id":"m","content":[{"type":"text"}],"output":[{}],"choices":[{"message":{"tool_calls":[{}]}}]}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(_ *testing.T, data []byte) {
		for _, p := range []wire.Protocol{wire.Messages, wire.Responses, wire.Chat} {
			st := wire.NewStream(p)
			w := wire.Rewriter{Protocol: p, Dirty: true, ID: "x"}
			for part := range bytes.SplitSeq(data, []byte("\n")) {
				e := wire.NewEvent("x", part)
				st.Event(e)
				w.Forward(e)
				w.End(e, &wire.Merged{ID: "x", Stop: "stop"})
			}
			st.Items(func(*wire.Out) bool { return true })
			if a, err := wire.ParseAnswer(p, data); err == nil {
				a.Items(func(*wire.Out) bool { return true })
				m := wire.Merged{Output: [][]byte{[]byte("{}")}, Stop: "x"}
				m.Whole(p, data)
			}
		}
	})
}

// The same meaning has one hash: other key orders, escapes, number forms, strings in place of one text, moved markers.
func TestCanonical(t *testing.T) {
	t.Parallel()
	same := [][2]string{
		{`{"role":"user","content":"hé"}`, `{"content":[{"text":"h\u00e9","type":"text","cache_control":{"type":"ephemeral"}}],"role":"user"}`},
		{`{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"n","input":{"x":1.0e4,"y":1}}]}`, `{"role":"assistant","content":[{"type":"tool_use","input":{"y":1,"x":10000},"name":"n","id":"a"}]}`},
		{`{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"s"}]}`, `{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"}]}`},
		{
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":"1"},{"type":"tool_result","tool_use_id":"b","content":"2"}]}`,
			`{"role":"user","content":[{"type":"tool_result","tool_use_id":"b","content":[{"type":"text","text":"2"}]},{"type":"tool_result","tool_use_id":"a","content":"1"}]}`,
		},
	}
	hash := func(item string) wire.Hash {
		r, err := wire.Parse(wire.Messages, []byte(`{"messages":[`+item+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		return r.Canonical(0)
	}
	for _, s := range same {
		if hash(s[0]) != hash(s[1]) {
			t.Errorf("differ:\n%s\n%s", s[0], s[1])
		}
	}
	if hash(same[0][0]) == hash(strings.Replace(same[0][0], "user", "assistant", 1)) {
		t.Error("roles do not differ")
	}
}

// A message is read alike as a string and as a list of one text, with a marker or without, so its digest is one. Everything else differs.
func TestDigest(t *testing.T) {
	t.Parallel()
	digest := func(item string) uint64 {
		r, err := wire.Parse(wire.Messages, []byte(`{"messages":[`+item+`]}`))
		if err != nil {
			t.Fatal(err)
		}
		return r.Digest(0)
	}
	plain := digest(`{"role":"user","content":"7 tokens left"}`)
	for _, same := range []string{
		`{"role":"user","content":[{"type":"text","text":"7 tokens left"}]}`,
		`{"role":"user","content":[{"type":"text","text":"7 tokens left","cache_control":{"type":"ephemeral"}}]}`,
		`{"content":[{"cache_control":{"type":"ephemeral"},"text":"7 tokens left","type":"text"}],"role":"user"}`,
	} {
		if digest(same) != plain {
			t.Errorf("differs: %s", same)
		}
	}
	for _, other := range []string{
		`{"role":"assistant","content":"7 tokens left"}`,
		`{"role":"user","content":"8 tokens left"}`,
		`{"role":"user","content":[{"type":"text","text":"7 tokens left"},{"type":"text","text":""}]}`,
		`{"role":"user","content":[{"type":"text","text":"7 tokens left","citations":[]}]}`,
		`{"role":"user","content":[{"type":"thinking","thinking":"7 tokens left"}]}`,
		`{"role":"user","name":"x","content":"7 tokens left"}`,
	} {
		if digest(other) == plain {
			t.Errorf("is the same: %s", other)
		}
	}
}

// A body is reported as no body of a protocol, and never read as another one.
func TestParse_refused(t *testing.T) {
	t.Parallel()
	for _, body := range []string{
		`{"messages":[{"role":"user","content":[{"type":"text","text":"one","te\u0078t":"two"}]}]}`, `{"messages":[{"role":"user","content":"one","content":[]}]}`,
		`{"messages":[{"role":"user","role":"assistant","content":"x"}]}`,
		``, `[]`, `{"messages":[}`, `{"messages":{}}`, `{"model":"a","model":"b"}`, `{"mess\u0061ges":[]}`, `{"messages":[]} x`, `{"a":` + strings.Repeat("[", 600) + strings.Repeat("]", 600) + `}`,
	} {
		if _, err := wire.Parse(wire.Messages, []byte(body)); err == nil {
			t.Errorf("%.40q was read", body)
		}
	}
}
