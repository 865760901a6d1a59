package proxy_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/proxy"
)

// events are a stream of server-sent events.
func events(list ...string) string {
	var b strings.Builder
	for _, e := range list {
		b.WriteString("data: " + e + "\n\n")
	}
	return b.String()
}

// sends is an upstream that answers with a body.
func sends(t *testing.T, contentType, body string) *tape {
	t.Helper()
	return newTape(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		_, _ = io.WriteString(w, body)
	})
}

func noRm() hook {
	return gate(func(c *abi.ToolCall) *abi.Reply {
		if strings.Contains(fmt.Sprint(c.Arguments), "rm -rf") {
			return block("never")
		}
		return nil
	})
}

const (
	sseType      = "text/event-stream"
	begunMessage = `{"type":"message_start","message":{"id":"m","role":"assistant","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}`
	endedMessage = `{"type":"message_delta","delta":{"stop_reason":"tool_use"},"usage":{"output_tokens":5}}`
	chatHello    = `{"model":"m","messages":[{"role":"user","content":"hello"}],"tools":[{"type":"function","function":{"name":"bash"}}],"stream":true}`
	respHello    = `{"model":"m","input":[{"role":"user","content":"hello"}],"tools":[{"type":"function","name":"bash"}],"stream":true}`
)

// However a server orders the pieces of an answer, a call that is blocked does not reach the client, and the one beside it does; what cannot be
// decided about is an error that ends the stream.
func TestCalls_anyOrder(t *testing.T) {
	t.Parallel()
	start1 := func(i int, id string) string {
		return fmt.Sprintf(`{"type":"content_block_start","index":%d,"content_block":{"type":"tool_use","id":%q,"name":"bash","input":{}}}`, i, id)
	}
	args1 := func(i int, command string) string {
		return fmt.Sprintf(`{"type":"content_block_delta","index":%d,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"%s\"}"}}`, i, command)
	}
	stop1 := func(i int) string { return fmt.Sprintf(`{"type":"content_block_stop","index":%d}`, i) }
	item := func(id, command string) string {
		return fmt.Sprintf(`{"type":"function_call","id":"fc_%s","call_id":%q,"name":"bash","arguments":%q}`, id, id, `{"command":"`+command+`"}`)
	}
	added := func(i int, id string) string {
		return fmt.Sprintf(`{"type":"response.output_item.added","output_index":%d,"item":{"type":"function_call","id":"fc_%s","call_id":%q,"name":"bash","arguments":""}}`, i, id, id)
	}
	done := func(i int, id, command string) string {
		return fmt.Sprintf(`{"type":"response.output_item.done","output_index":%d,"item":%s}`, i, item(id, command))
	}
	const created = `{"type":"response.created","response":{"id":"r","status":"in_progress"}}`
	completed := func(items ...string) string {
		return `{"type":"response.completed","response":{"id":"r","status":"completed","output":[` + strings.Join(items, ",") + `],"usage":{"input_tokens":9,"output_tokens":5}}}`
	}
	piece := func(i int, id, command string) string {
		return fmt.Sprintf(`{"index":%d,"id":%q,"type":"function","function":{"name":"bash","arguments":%q}}`, i, id, `{"command":"`+command+`"}`)
	}
	chunk := func(content, finish string, calls ...string) string {
		return `{"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":` + content + `,"tool_calls":[` + strings.Join(calls, ",") + `]},"finish_reason":` + finish + `}]}`
	}
	const behind = ": behind the end\n\n"
	const bad1, bad = `{"type":"tool_use","id":"bad","name":"bash","input":{"command":"rm -rf /"}}`, "rm -rf /"
	delta := func(i int, args string) string {
		return fmt.Sprintf(`{"type":"response.function_call_arguments.delta","output_index":%d,"item_id":"fc_ok","delta":%q}`, i, args)
	}
	legacy := func(command, finish string) string {
		return fmt.Sprintf(`{"id":"c","choices":[{"index":0,"delta":{"function_call":{"name":"bash","arguments":%q}},"finish_reason":%s}]}`, command, finish)
	}
	end, created2 := chunk("null", `"tool_calls"`), `{"type":"response.created","response":{"id":"r","output":[`+item("bad", bad)+`]}}`
	all1 := func(list ...string) string {
		return events(append(append([]string{begunMessage, start1(0, "ok"), args1(0, "ls"), stop1(0)}, list...), endedMessage, `{"type":"message_stop"}`)...)
	}
	all2 := func(list ...string) string {
		return events(append([]string{created, added(0, "ok"), done(0, "ok", "ls")}, list...)...)
	}
	all3 := func(list ...string) string { return events(append(list, "[DONE]")...) }
	deep := strings.Repeat("[", 600) + strings.Repeat("]", 600)
	for name, c := range map[string]struct {
		path, ask, answer string
		broken            bool
	}{
		"messages, a call in the beginning":   {"/v1/messages", hello, events(strings.Replace(begunMessage, `"content":[]`, `"content":[`+bad1+`]`, 1), endedMessage, `{"type":"message_stop"}`), true},
		"messages, an index of two":           {"/v1/messages", hello, all1(start1(1, "bad"), args1(1, bad), strings.Replace(args1(1, "ls"), `"index":1`, `"index":1.5`, 1), stop1(1)), true},
		"messages, an escaped key":            {"/v1/messages", hello, all1(strings.Replace(start1(1, "bad"), `"type"`, `"t\u0079pe"`, 1), args1(1, bad), stop1(1)), false},
		"messages, an event nested too deep":  {"/v1/messages", hello, all1(strings.Replace(start1(1, "bad"), `"index"`, `"x":`+deep+`,"index"`, 1), args1(1, bad), stop1(1)), true},
		"messages, a block without beginning": {"/v1/messages", hello, all1(args1(1, bad), stop1(1)), true},
		"messages, a byte order mark":         {"/v1/messages", hello, "\ufeff" + all1(start1(1, "bad"), args1(1, bad), stop1(1)), true},
		"messages, a call behind the end":     {"/v1/messages", hello, all1() + behind + events(start1(1, "bad"), args1(1, bad), stop1(1)), false},
		"responses, a call in the beginning":  {"/v1/responses", respHello, events(created2, completed()), true},
		"responses, a call under way":         {"/v1/responses", respHello, all2(strings.Replace(created2, "created", "in_progress", 1), completed(item("ok", "ls"))), true},
		"responses, a call that failed":       {"/v1/responses", respHello, all2(strings.Replace(completed(item("bad", bad)), "response.completed", "response.failed", 1)), true},
		"responses, another end":              {"/v1/responses", respHello, all2(completed(item("ok", bad))), true},
		"responses, another name at the end":  {"/v1/responses", respHello, all2(completed(strings.Replace(item("ok", "ls"), `"bash"`, `"rm -rf"`, 1))), true},
		"responses, other pieces":             {"/v1/responses", respHello, events(created, added(0, "ok"), delta(0, `{"command":"rm -rf /"}`), done(0, "ok", "ls"), completed(item("ok", "ls"))), true},
		"responses, other arguments":          {"/v1/responses", respHello, events(created, added(0, "ok"), strings.Replace(delta(0, bad), `"delta":`, `"arguments":`, 1), done(0, "ok", "ls"), completed(item("ok", "ls"))), true},
		"responses, another beginning":        {"/v1/responses", respHello, events(created, strings.Replace(added(0, "ok"), `"name":"bash"`, `"name":"rm -rf"`, 1), done(0, "ok", "ls"), completed(item("ok", "ls"))), true},
		"responses, a shell": {"/v1/responses", respHello, all2(`{"type":"response.output_item.done","output_index":1,"item":{"type":"local_shell_call","id":"lsh","call_id":"bad","status":"completed","action":{"type":"exec","command":["rm -rf","/"]}}}`,
			completed(item("ok", "ls"), `{"type":"local_shell_call","id":"lsh","call_id":"bad","status":"completed","action":{"type":"exec","command":["rm -rf","/"]}}`)), false},
		"responses, arguments that are no string": {"/v1/responses", respHello, all2(`{"type":"response.output_item.done","output_index":1,"item":{"type":"function_call","id":"fc_bad","call_id":"bad","name":"bash","arguments":{"command":"rm -rf /"}}}`, completed(item("ok", "ls"))), false},
		"chat, role and calls":                    {"/v1/chat/completions", chatHello, all3(strings.Replace(chunk("null", "null", piece(0, "ok", "ls"), piece(1, "bad", bad)), `"delta":{`, `"delta":{"role":"assistant",`, 1), end), false},
		"chat, one index for two":                 {"/v1/chat/completions", chatHello, all3(chunk(`"so"`, "null", piece(0, "ok", "ls"), piece(0, "bad", bad)), end), true},
		"chat, no index":                          {"/v1/chat/completions", chatHello, all3(strings.ReplaceAll(chunk(`"so"`, "null", piece(0, "ok", "ls"), piece(0, "bad", bad)), `"index":0,"id"`, `"id"`), end), true},
		"chat, a large index":                     {"/v1/chat/completions", chatHello, all3(chunk("null", `"tool_calls"`, piece(0, "ok", "ls"), piece(5000, "bad", bad))), false},
		"chat, two ends":                          {"/v1/chat/completions", chatHello, all3(chunk("null", `"tool_calls"`, piece(0, "ok", "ls")), chunk("null", `"tool_calls"`, piece(1, "bad", bad))), true},
		"chat, two answers":                       {"/v1/chat/completions", chatHello, all3(chunk("null", "null", piece(0, "ok", "ls")), strings.Replace(chunk("null", `"tool_calls"`, piece(0, "", bad)), `[{"index":0`, `[{"index":1`, 1), end), true},
		"chat, no error":                          {"/v1/chat/completions", chatHello, all3(chunk("null", "null", piece(0, "ok", "ls")), strings.Replace(chunk("null", "null", piece(1, "bad", bad)), `"id"`, `"error":null,"id"`, 1), end), false},
		"chat, an error with a call":              {"/v1/chat/completions", chatHello, all3(chunk("null", "null", piece(0, "ok", "ls")), strings.Replace(chunk("null", "null", piece(1, "bad", bad)), `"id"`, `"error":{},"id"`, 1), end), true},
		"chat, answers that are no list":          {"/v1/chat/completions", chatHello, all3(chunk("null", "null", piece(0, "ok", "ls")), strings.Replace(strings.Replace(chunk("null", "null", piece(1, "bad", bad)), `[{"index":0,"delta"`, `{"0":{"index":0,"delta"`, 1), `}]}`, `}}}`, 1), end), true},
		"chat, a call of two tools":               {"/v1/chat/completions", chatHello, all3(chunk("null", "null", strings.Replace(piece(0, "bad", bad), `"type"`, `"custom":{"name":"bash","input":"ls"},"type"`, 1)), end), true},
		"chat, a call without JSON":               {"/v1/chat/completions", chatHello, all3(chunk("null", "null", piece(0, "ok", "ls"), `{"index":1,"id":"bad","type":"custom","custom":{"name":"bash","input":"rm -rf /"}}`), end), false},
		"chat, a function_call":                   {"/v1/chat/completions", chatHello, all3(legacy(`{"command":"l`, "null"), strings.Replace(legacy(`s"}`, `"function_call"`), `"name":"bash",`, "", 1), "{}"), false},
		"chat, a function_call that is bad":       {"/v1/chat/completions", chatHello, all3(legacy(bad, `"function_call"`)), true},
		"messages, calls overlap":                 {"/v1/messages", hello, events(begunMessage, start1(0, "ok"), start1(1, "bad"), args1(0, "ls"), args1(1, "rm -rf /"), stop1(0), stop1(1), endedMessage, `{"type":"message_stop"}`), false},
		"messages, a call begins twice":           {"/v1/messages", hello, events(begunMessage, start1(0, "ok"), args1(0, "ls"), start1(0, "bad"), args1(0, "rm -rf /"), stop1(0), endedMessage, `{"type":"message_stop"}`), true},
		"messages, a call without an end":         {"/v1/messages", hello, events(begunMessage, start1(0, "bad"), args1(0, "rm -rf /"), endedMessage, `{"type":"message_stop"}`), true},
		"responses, calls overlap":                {"/v1/responses", respHello, events(created, added(0, "ok"), added(1, "bad"), done(1, "bad", "rm -rf /"), done(0, "ok", "ls"), completed(item("ok", "ls"), item("bad", "rm -rf /"))), false},
		"responses, no beginnings":                {"/v1/responses", respHello, events(created, done(0, "ok", "ls"), done(1, "bad", "rm -rf /"), completed(item("ok", "ls"), item("bad", "rm -rf /"))), false},
		"responses, only the end":                 {"/v1/responses", respHello, events(created, completed(item("bad", "rm -rf /"))), true},
		"chat, calls with the end":                {"/v1/chat/completions", chatHello, events(chunk(`"so"`, `"tool_calls"`, piece(0, "ok", "ls"), piece(1, "bad", "rm -rf /")), "[DONE]"), false},
		"chat, text with calls":                   {"/v1/chat/completions", chatHello, events(chunk(`"so"`, "null", piece(0, "bad", "rm -rf /")), chunk(`" be it"`, "null", piece(1, "ok", "ls")), chunk("null", `"tool_calls"`), "[DONE]"), false},
		"chat, no finish reason":                  {"/v1/chat/completions", chatHello, events(chunk("null", "null", piece(0, "ok", "ls"), piece(1, "bad", "rm -rf /")), "[DONE]"), false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, kind := range []string{"Text/Event-Stream; charset=utf-8", "application/json"} { // clients read what they asked for
				up := sends(t, kind, c.answer)
				s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, noRm())})
				resp, got := post(t, s.url+c.path, c.ask)
				if resp.StatusCode != http.StatusOK || contains(got, "rm -rf") {
					t.Errorf("the client got %s", got)
				}
				if failed := contains(got, "cannot be read"); failed != c.broken || !c.broken && !contains(got, "ls") && !strings.Contains(name, "function_call") {
					t.Errorf("broken is %t: %s", failed, got)
				}
				if strings.Contains(c.answer, `"so"`) && !c.broken && bytes.Count(got, []byte(`"so"`)) != 1 {
					t.Errorf("the text is not there once: %s", got)
				}
				if roles := strings.Count(c.answer, `"role":"assistant"`); !c.broken && bytes.Count(got, []byte(`"role":"assistant"`)) != roles {
					t.Errorf("the role is not there as often: %s", got)
				}
				idle := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, quiet{})})
				want := c.answer
				if before, _, ok := strings.Cut(want, behind); ok {
					want = before + behind
				}
				if _, got := post(t, idle.url+c.path, c.ask); !c.broken && string(got) != want {
					t.Errorf("not the same bytes: %s", got)
				}
			}
		})
	}
}

// Calls of answers that are not streamed, and what else of one the client may take for a call.
func TestCalls_whole(t *testing.T) {
	t.Parallel()
	const shell = `{"type":"local_shell_call","id":"l","call_id":"bad","status":"completed","action":{"type":"exec","command":["rm -rf","/"]}}`
	chat := func(message string) string {
		return `{"id":"c","choices":[{"index":0,"message":{"role":"assistant",` + message + `},"finish_reason":"tool_calls"}]}`
	}
	for name, c := range map[string]struct {
		path, ask, answer string
		status            int
	}{
		"responses, a shell":         {"/v1/responses", respHello, `{"id":"r","status":"completed","output":[{"type":"function_call","call_id":"ok","name":"bash","arguments":"{\"command\":\"ls\"}"},` + shell + `]}`, http.StatusOK},
		"responses, no call_id":      {"/v1/responses", respHello, `{"id":"r","status":"completed","output":[{"type":"function_call","call_id":"ok","name":"bash","arguments":"{\"command\":\"ls\"}"},` + strings.Replace(shell, `"call_id":"bad",`, "", 1) + `]}`, http.StatusOK},
		"chat, a call without JSON":  {"/v1/chat/completions", chatHello, chat(`"tool_calls":[{"id":"ok","function":{"name":"bash","arguments":"{\"command\":\"ls\"}"}},{"id":"bad","type":"custom","custom":{"name":"bash","input":"rm -rf"}}]`), http.StatusOK},
		"chat, a call of two tools":  {"/v1/chat/completions", chatHello, chat(`"tool_calls":[{"id":"ok","function":{"name":"bash","arguments":"rm -rf"},"custom":{"name":"bash","input":"ls"}}]`), http.StatusForbidden},
		"chat, a function_call":      {"/v1/chat/completions", chatHello, chat(`"function_call":{"name":"bash","arguments":"{\"command\":\"ls\"}"}`), http.StatusOK},
		"chat, a bad function_call":  {"/v1/chat/completions", chatHello, chat(`"function_call":{"name":"bash","arguments":"rm -rf"}`), http.StatusForbidden},
		"chat, two answers":          {"/v1/chat/completions", chatHello, strings.Replace(chat(`"content":"ls"`), `"choices":[`, `"choices":[{"index":1,"message":{"tool_calls":[{"id":"bad","function":{"name":"bash","arguments":"rm -rf"}}]}},`, 1), http.StatusForbidden},
		"messages, an escaped field": {"/v1/messages", hello, `{"id":"m","type":"message","c\u006fntent":[{"type":"text","text":"ls"},{"type":"tool_use","id":"ok","name":"bash","input":{"command":"ls"}},{"type":"tool_use","id":"bad","name":"bash","input":{"command":"rm -rf"}}],"stop_reason":"tool_use"}`, http.StatusOK},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := sends(t, "application/json", c.answer)
			s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, noRm())})
			ask := strings.Replace(c.ask, `"stream":true`, `"stream":false`, 1)
			resp, got := post(t, s.url+c.path, ask)
			if resp.StatusCode != c.status || contains(got, "rm -rf") || c.status == http.StatusOK && !contains(got, "ls") {
				t.Errorf("the client got %s %s", resp.Status, got)
			}
			idle := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, quiet{})})
			if _, got := post(t, idle.url+c.path, ask); c.status == http.StatusOK && string(got) != c.answer {
				t.Errorf("not the same bytes: %s", got)
			}
		})
	}
}

// A plugin that only observes calls sees them, and nothing is held for it: an answer that cannot be decided about passes as it came.
func TestCalls_observed(t *testing.T) {
	t.Parallel()
	call := `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"bash","input":{}}}`
	whole := events(begunMessage, call, `{"type":"content_block_stop","index":0}`, endedMessage, `{"type":"message_stop"}`)
	for answer, want := range map[string]int{whole: 2, events(begunMessage, call, endedMessage, `{"type":"message_stop"}`): 0} {
		var seen []abi.Phase
		up := sends(t, sseType, answer)
		s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, hook{
			name: "watch", hooks: []abi.Hook{{Phase: abi.ToolGate, Mode: abi.ModeObserve}, {Phase: abi.BeforeToolExecute, Mode: abi.ModeObserve}},
			answer: func(e *abi.Event) (*abi.Reply, error) {
				seen = append(seen, e.Phase)
				return nil, nil
			},
		})})
		_, got := post(t, s.url+"/v1/messages", hello)
		wait(t, "the request ends", func() bool { return s.Report().Counts["active"] == 0 })
		if string(got) != answer || len(seen) != want {
			t.Errorf("saw %v; the client got %s", seen, got)
		}
	}
}

// Of a call that a plugin rewrites nothing of what it was reaches the client: neither in the event that begins it, nor in a comment.
func TestRewritten_rest(t *testing.T) {
	t.Parallel()
	const secret = `{"command":"the secret"}`
	call := `{"type":"function_call","id":"fc","call_id":"c","name":"bash","arguments":` + quote(secret) + `}`
	done := `{"type":"response.output_item.done","output_index":0,"item":` + call + `}`
	for path, c := range map[string][2]string{
		"/v1/messages": {hello, events(begunMessage, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"bash","input":`+secret+`}}`, `{"type":"content_block_stop","index":0}`, endedMessage, `{"type":"message_stop"}`)},
		"/v1/responses": {respHello, events(`{"type":"response.created","response":{"id":"r"}}`, `{"type":"response.output_item.added","output_index":0,"item":`+call+`}`) + ": " + done + "\n" + events(done) +
			events(`{"type":"response.completed","response":{"id":"r","status":"completed","output":[`+call+`]}}`)},
	} {
		up := sends(t, sseType, c[1])
		s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, hook{
			name: "rewrite", hooks: []abi.Hook{{Phase: abi.BeforeToolExecute, Mode: abi.ModeTransform}},
			answer: func(*abi.Event) (*abi.Reply, error) {
				return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectRewriteCall, Arguments: map[string]any{"command": "pwd"}}}}, nil
			},
		})})
		if _, got := post(t, s.url+path, c[0]); contains(got, "the secret") || !contains(got, "pwd") {
			t.Errorf("%s: the client got %s", path, got)
		}
	}
}

// What a hostile upstream sends without end is bounded: a call, the end of an answer, headers. The client gets an end, and the next request works.
func TestHostile(t *testing.T) {
	t.Parallel()
	endless := func(w http.ResponseWriter, r *http.Request, piece string) {
		for r.Context().Err() == nil {
			if _, err := io.WriteString(w, piece); err != nil {
				return
			}
		}
	}
	big := strings.Repeat("x", 64<<10)
	for name, answer := range map[string]http.HandlerFunc{
		"endless call": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", sseType)
			_, _ = io.WriteString(w, events(begunMessage, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"bash","input":{}}}`))
			endless(w, r, events(`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"`+big+`"}}`))
		},
		"a huge event": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", sseType)
			_, _ = io.WriteString(w, events(begunMessage, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"bash","input":{},"x":"`+strings.Repeat("x", 17<<20)+`"}}`,
				`{"type":"content_block_stop","index":0}`, endedMessage, `{"type":"message_stop"}`))
		},
		"endless end": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", sseType)
			_, _ = io.WriteString(w, events(begunMessage, endedMessage))
			endless(w, r, events(`{"type":"novelty","x":"`+big+`"}`))
		},
		"endless headers": func(w http.ResponseWriter, _ *http.Request) {
			for i := range 400 {
				w.Header().Set(fmt.Sprint("X-Filler-", i), big)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			up := newTape(t, answer)
			s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, quiet{})})
			_, got := post(t, s.url+"/v1/messages", hello)
			if !contains(got, `"type":"error"`) || len(got) > 1<<20 {
				t.Errorf("%d bytes: %.300s", len(got), got)
			}
			wait(t, "the request ends", func() bool { return s.Report().Counts["active"] == 0 })
		})
	}
}

// Bodies that lie about their length, or are no events at all, end as they came: cut, or byte for byte.
func TestMalformed(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"no events": "this is no stream", "no end": "data: {\"type\":\"message_start\"", "binary": "data: \x00\xff\xfe\n\n:\r\r\n\ndata\n\n", "numbers": events(`{"type":"content_block_stop","index":99999999999999999999}`, `[]`, `"x"`, `{"type":5}`),
	} {
		up := sends(t, sseType, body)
		s := start(t, up.URL, proxy.Config{})
		if _, got := post(t, s.url+"/v1/messages", hello); string(got) != body {
			t.Errorf("%s: %q", name, got)
		}
	}
	short := newTape(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "1000")
		_, _ = io.WriteString(w, `{"type":"message","content":[`)
	})
	for _, cfg := range []proxy.Config{{}, {Runtime: runtimeOf(t, quiet{})}} {
		s := start(t, short.URL, cfg)
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPost, s.url+"/v1/messages", strings.NewReader(hello))
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultTransport.RoundTrip(r)
		if err == nil {
			_, err = io.ReadAll(resp.Body)
			_ = resp.Body.Close()
		}
		if err == nil {
			t.Error("an answer that broke off has an end")
		}
	}
}

// A provider that adds fields, events and headers: they reach the client, also where plugins act on what is beside them.
func TestNovelties(t *testing.T) {
	t.Parallel()
	up := newTape(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", sseType)
		w.Header().Set("Anthropic-Novelty", r.Header.Get("Anthropic-Beta"))
		w.WriteHeader(http.StatusCreated)
		_, _ = io.WriteString(w, events(begunMessage, `{"type":"hologram","x":1}`, `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"bash","input":{},"novelty":{"a":[1]}}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"command\":\"ls\"}"},"novelty":2}`, `{"type":"content_block_stop","index":0}`,
			`{"type":"message_delta","delta":{"stop_reason":"tool_use","novelty":3},"usage":{"output_tokens":5,"novelty":4}}`, `{"type":"message_stop","novelty":5}`))
	})
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, hook{
		name: "rewrite", hooks: []abi.Hook{{Phase: abi.BeforeToolExecute, Mode: abi.ModeTransform}},
		answer: func(*abi.Event) (*abi.Reply, error) {
			return &abi.Reply{Effects: []abi.Effect{{Type: abi.EffectRewriteCall, Arguments: map[string]any{"command": "pwd"}}}}, nil
		},
	})})
	ask := strings.Replace(hello, `"model"`, `"novelty":{"deep":[{"x":1e400}]},"model"`, 1)
	resp, got := post(t, s.url+"/v1/messages?beta=new", ask, "Anthropic-Beta", "novelty-2027-01-01")
	sent, header := up.last()
	if string(sent) != ask || header.Get("Anthropic-Beta") != "novelty-2027-01-01" || resp.Header.Get("Anthropic-Novelty") != "novelty-2027-01-01" || resp.StatusCode != http.StatusCreated {
		t.Errorf("sent %s with %v; %v", sent, header, resp)
	}
	for _, want := range []string{`{"type":"hologram","x":1}`, `"novelty":{"a":[1]}`, `pwd`, `"novelty":3`, `"novelty":4`, `"novelty":5`} {
		if !contains(got, want) {
			t.Errorf("%s is lost: %s", want, got)
		}
	}
}

// A request body that comes slowly is waited for, and one that ends early goes nowhere.
func TestSlowBody(t *testing.T) {
	t.Parallel()
	up := sends(t, "application/json", "{}")
	s := start(t, up.URL, proxy.Config{Runtime: runtimeOf(t, quiet{})})
	body, w := io.Pipe()
	go func() {
		for i := 0; i < len(hello); i += 40 {
			_, _ = io.WriteString(w, hello[i:min(i+40, len(hello))])
		}
		_ = w.Close()
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"/v1/messages", body)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if sent, _ := up.last(); string(sent) != hello {
		t.Errorf("sent %q", sent)
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	half, open := io.Pipe()
	context.AfterFunc(ctx, func() { _ = open.CloseWithError(io.ErrUnexpectedEOF) })
	go func() { _, _ = io.WriteString(open, hello[:20]) }()
	r, err = http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/messages", half)
	if err != nil {
		t.Fatal(err)
	}
	if resp, err := http.DefaultTransport.RoundTrip(r); err == nil {
		_ = resp.Body.Close()
		t.Errorf("%s", resp.Status)
	}
	wait(t, "the request ends", func() bool { return s.Report().Counts["active"] == 0 })
	if len(up.bodies) != 1 {
		t.Errorf("%d requests", len(up.bodies))
	}
}
