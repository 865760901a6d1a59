package transcript_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/llm/transcript"
)

// render writes conversations as one line per message, so that a test can state
// what it expects: id role, text or [media], calls, and what accompanies it.
func render(file *transcript.File) string {
	var b strings.Builder
	for i := range file.Conversations {
		c := &file.Conversations[i]
		fmt.Fprintf(&b, "# %s %s\n", c.ID, c.Title)
		for _, e := range c.Entries {
			fmt.Fprintf(&b, "%d %s %s", e.Line, e.Message.ID, e.Message.Role)
			for _, c := range e.Message.Content {
				switch c.Type {
				case "text":
					fmt.Fprintf(&b, " %q", c.Text)
				case "thinking":
					fmt.Fprintf(&b, " thinking(%q %q)", c.Text, c.Signature)
				default:
					fmt.Fprintf(&b, " %s(%s %s%s %s)", c.Type, c.MediaType, c.URL, c.Data, c.Title)
				}
			}
			for _, call := range e.Message.ToolCalls {
				args, err := json.Marshal(call.Arguments)
				if err != nil {
					args = []byte(err.Error())
				}
				fmt.Fprintf(&b, " %s=%s%s", call.ID, call.Name, args)
			}
			if e.Message.ToolCallID != "" {
				fmt.Fprintf(&b, " <%s %s %s>", e.Message.ToolCallID, e.ToolName, e.Status)
			}
			if e.Model != "" || e.StopReason != "" {
				fmt.Fprintf(&b, " {%s %s}", e.Model, e.StopReason)
			}
			if u := e.Usage; u != nil {
				fmt.Fprintf(&b, " %d+%d=%d cache %d/%d thinking %d", u.PromptTokens, u.CompletionTokens, u.TotalTokens,
					u.CacheReadTokens, u.CacheCreationTokens, u.ThinkingTokens)
			}
			if e.Message.Visibility != "" {
				b.WriteString(" " + string(e.Message.Visibility))
			}
			b.WriteByte('\n')
		}
		for _, n := range c.Notes {
			fmt.Fprintf(&b, "! %d %s\n", n.Line, n.What)
		}
	}
	return b.String()
}

type formatTest struct {
	name    string
	input   string
	format  transcript.Format
	want    string
	skipped map[string]int
}

func TestFormats(t *testing.T) {
	t.Parallel()
	for _, tests := range [][]formatTest{piTests(), claudeTests(), listTests(), datasetTests()} {
		for _, tt := range tests {
			t.Run(tt.name, func(t *testing.T) {
				t.Parallel()
				file, err := transcript.Read(strings.NewReader(tt.input), transcript.Options{})
				if err != nil {
					t.Fatal(err)
				}
				if file.Format != tt.format {
					t.Errorf("format %s, want %s", file.Format, tt.format)
				}
				if got := render(file); got != tt.want {
					t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
				}
				if !maps.Equal(file.Skipped, tt.skipped) {
					t.Errorf("skipped %v, want %v", file.Skipped, tt.skipped)
				}
				for i := range file.Conversations {
					if err := file.Conversations[i].Validate(); err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
}

func piTests() []formatTest {
	return []formatTest{
		{
			name: "pi without ids",
			input: `{"type":"session","id":"s1","timestamp":"2026-01-02T03:04:05Z","cwd":"/p"}
{"type":"model_change","modelId":"big-1"}
{"type":"message","message":{"role":"user","content":"count the files"}}
{"type":"message","message":{"role":"assistant","content":[{"type":"thinking","thinking":"hm","thinkingSignature":"sig"},{"type":"text","text":"Looking."},{"type":"toolCall","id":"t1","name":"bash","arguments":{"command":"ls | wc -l","n":3}}],"model":"big-1","usage":{"input":10,"output":5,"cacheRead":100,"cacheWrite":7},"stopReason":"toolUse"}}
{"type":"message","message":{"role":"toolResult","toolCallId":"t1","toolName":"bash","content":[{"type":"text","text":"12"},{"type":"image","data":"QUJD","mimeType":"image/png"}],"isError":false}}
{"type":"message","message":{"role":"assistant","content":[],"stopReason":"aborted","errorMessage":"by the user","usage":{"input":0,"output":0}}}
`,
			format: transcript.FormatPi,
			want: `# s1 
3 m000001 user "count the files"
4 m000002 assistant thinking("hm" "sig") "Looking." t1=bash{"command":"ls | wc -l","n":3} {big-1 tool_use} 117+5=122 cache 100/7 thinking 0
5 m000003 tool "12" image(image/png QUJD ) <t1 bash success>
6 m000004 assistant
! 6 the answer ended early: aborted by the user
`,
			skipped: map[string]int{"model_change": 1},
		},
		{
			name: "pi tree: the path of the last entry",
			input: `{"type":"session","version":3,"id":"s2"}
{"type":"message","id":"a","parentId":null,"message":{"role":"user","content":"one"}}
{"type":"message","id":"b","parentId":"a","message":{"role":"assistant","content":[{"type":"text","text":"wrong way"}],"stopReason":"stop"}}
{"type":"message","id":"c","parentId":"b","message":{"role":"user","content":"more of that"}}
{"type":"branch_summary","id":"d","parentId":"a","fromId":"c","summary":"went wrong"}
{"type":"custom_message","id":"e","parentId":"d","customType":"x","content":"from an extension"}
{"type":"custom","id":"f","parentId":"e","data":{}}
{"type":"message","id":"g","parentId":"f","message":{"role":"bashExecution","command":"make","output":"boom","exitCode":2}}
{"type":"message","id":"h","parentId":"g","message":{"role":"bashExecution","command":"secret","output":"x","excludeFromContext":true}}
{"type":"session_info","id":"i","parentId":"h","name":"A title\nsecond line"}
{"type":"message","id":"j","parentId":"nowhere","message":{"role":"assistant","content":"done"}}
`,
			format: transcript.FormatPi,
			want: `# s2 A title
2 a user "one"
5 d user "Summary of a branch that the conversation came back from:\n\nwent wrong"
6 e user "from an extension"
8 g user "The user ran ` + "`make`" + `.\n\nboom\n\nExit code 2."
11 j assistant "done"
! 11 parent "nowhere" is not in the file, the entry before stands in
`,
			skipped: map[string]int{"abandoned branch": 2, "custom": 1, "bashExecution kept from the model": 1, "session_info": 1},
		},
		{
			name: "pi: two sessions in a file",
			input: `{"type":"session","id":"s"}
{"type":"message","message":{"role":"user","content":"one"}}
{"type":"session","id":"s"}
{"type":"message","message":{"role":"user","content":"two"}}
{"type":"message","message":{"role":"compactionSummary","summary":"sum"}}
`,
			format: transcript.FormatPi,
			want: `# s 
2 m000001 user "one"
# s-2 
4 m000001 user "two"
5 m000002 system "Summary of the conversation before this point:\n\nsum"
`,
		},
	}
}

func claudeTests() []formatTest {
	return []formatTest{
		{
			name: "claude code: one answer over several lines",
			input: `{"type":"summary","summary":"Fix the parser","leafUuid":"x"}
{"type":"user","uuid":"u1","sessionId":"S","isSidechain":false,"message":{"role":"user","content":"go"},"timestamp":"2026-01-02T03:04:05.678Z"}
{"type":"assistant","uuid":"a1","sessionId":"S","message":{"id":"msg1","role":"assistant","model":"m","content":[{"type":"thinking","thinking":"t","signature":"s"}],"stop_reason":null,"usage":{"input_tokens":3,"cache_read_input_tokens":50,"cache_creation_input_tokens":20,"output_tokens":1}}}
{"type":"assistant","uuid":"a2","message":{"id":"msg1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c1","name":"Read","input":{"file":"a"}}],"usage":{"input_tokens":3,"cache_read_input_tokens":50,"cache_creation_input_tokens":20,"output_tokens":1}}}
{"type":"progress","uuid":"p1","sessionId":"S","data":{}}
{"type":"user","uuid":"r1","message":{"role":"user","content":[{"type":"tool_result","tool_use_id":"c1","content":[{"type":"text","text":"A"}]}]}}
{"type":"assistant","uuid":"a3","message":{"id":"msg1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"c2","name":"Bash","input":{}}],"stop_reason":"tool_use","usage":{"input_tokens":3,"cache_read_input_tokens":50,"cache_creation_input_tokens":20,"output_tokens":90}}}
{"type":"assistant","uuid":"side","isSidechain":true,"message":{"id":"msg9","role":"assistant","content":[{"type":"text","text":"from a subagent"}]}}
{"type":"user","uuid":"r2","message":{"role":"user","content":[{"type":"text","text":"and hurry"},{"type":"tool_result","tool_use_id":"c2","content":"exit 1","is_error":true}]}}
{"type":"user","uuid":"r2","message":{"role":"user","content":"written twice"}}
{"type":"user","uuid":"u2","isMeta":true,"message":{"role":"user","content":"caveat"}}
{"type":"assistant","uuid":"e1","isApiErrorMessage":true,"message":{"id":"x","role":"assistant","content":[{"type":"text","text":"API Error"}]}}
{"type":"assistant","uuid":"a4","message":{"id":"msg1","role":"assistant","model":"m","content":"late words"}}
`,
			format: transcript.FormatClaudeCode,
			want: `# S Fix the parser
2 u1 user "go"
3 a1 assistant thinking("t" "s") c1=Read{"file":"a"} c2=Bash{} {m tool_use} 73+90=163 cache 50/20 thinking 0
6 r1 tool "A" <c1 Read success>
9 r2 tool "exit 1" <c2 Bash error>
9 r2-2 user "and hurry"
11 u2 user "caveat" internal
13 a4 assistant "late words" {m }
`,
			skipped: map[string]int{"summary": 1, "progress": 1, "sidechain": 1, "repeated entry": 1, "api error": 1},
		},
		{
			name: "claude code: a file of a subagent",
			input: `{"type":"user","uuid":"u1","sessionId":"S","isSidechain":true,"message":{"role":"user","content":"task"}}
{"type":"assistant","uuid":"a1","sessionId":"S","isSidechain":true,"message":{"id":"m","content":[{"type":"text","text":"ok"},{"type":"container_upload"}]}}
`,
			format: transcript.FormatClaudeCode,
			want: `# S 
1 u1 user "task"
2 a1 assistant "ok"
`,
			skipped: map[string]int{"content block container_upload": 1},
		},
	}
}

func listTests() []formatTest {
	return []formatTest{
		{
			name: "openai array",
			input: `[
  {"role": "developer", "content": "be brief"},
  {"role": "user", "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "data:image/png;base64,QUJD"}}, {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}]},
  {"role": "assistant", "content": null, "reasoning_content": "hm", "tool_calls": [
    {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{\"a\": 1, \"b\": 1.5, \"big\": 12345678901234567890}"}},
    {"id": "c2", "type": "function", "function": {"name": "g", "arguments": "{broken"}},
    {"id": "c3", "type": "function", "function": {"name": "h", "arguments": ""}}]},
  {"role": "tool", "tool_call_id": "c1", "name": "f", "content": "one"},
  {"role": "tool", "tool_call_id": "c2", "content": ""},
  {"role": "tool", "tool_call_id": "c3", "content": [{"type": "text", "text": "three"}]},
  {"role": "assistant", "content": "done", "refusal": null}
]`,
			format: transcript.FormatOpenAI,
			want: `# c0001 
2 m000001 system "be brief"
3 m000002 user "look" image(image/png QUJD ) image( https://x.test/a.png )
4 m000003 assistant thinking("hm" "") c1=f{"a":1,"b":1.5,"big":12345678901234567000} c2=g"{broken" c3=hnull
8 m000004 tool "one" <c1 f success>
9 m000005 tool "" <c2 g success>
10 m000006 tool "three" <c3 h success>
11 m000007 assistant "done"
`,
		},
		{
			name: "openai: functions of old, JSON lines, CRLF, byte order mark",
			input: "\xEF\xBB\xBF\r\n" + `{"role":"user","content":{"type":"text","text":"hi"},"id":"first"}` + "\r\n\r\n" +
				`{"role":"assistant","content":null,"function_call":{"name":"f","arguments":"{}"}}` + "\r\n" +
				`{"role":"function","name":"f","content":"r"}` + "\r\n" +
				`{"role":"assistant","content":"bye","usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_tokens_details":{"cached_tokens":4}},"finish_reason":"stop"}`,
			format: transcript.FormatOpenAI,
			want: `# c0001 
2 first user "hi"
4 m000002 assistant call_000001=f{}
5 m000003 tool "r" <call_000001 f success>
6 m000004 assistant "bye" { end_turn} 7+2=9 cache 4/0 thinking 0
`,
		},
		{
			name:   "openai: many conversations, one a line",
			input:  `{"messages":[{"role":"user","content":"a"}],"id":"x"}` + "\n" + `{"messages":[]}` + "\n" + `{"messages":[{"role":"user","content":"b"}],"title":"second"}`,
			format: transcript.FormatOpenAI,
			want: `# x 
1 m000001 user "a"
# c0002 second
3 m000001 user "b"
`,
			skipped: map[string]int{"empty conversation": 1},
		},
		{
			name: "anthropic object",
			input: `{
  "model": "m",
  "system": [{"type": "text", "text": "be brief"}],
  "messages": [
    {"role": "user", "content": [{"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}, {"type": "document", "title": "T", "source": {"type": "url", "url": "https://x.test/d"}}]},
    {"role": "assistant", "content": [{"type": "redacted_thinking", "data": "xyz"}, {"type": "tool_use", "id": "c1", "name": "f", "input": {"k": [null, true]}}]},
    {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "c1", "content": "r", "is_error": true}, {"type": "text", "text": "go on"}]}
  ]
}`,
			format: transcript.FormatAnthropic,
			want: `# c0001 
1 m000001 system "be brief"
5 m000002 user image(image/png QUJD ) document( https://x.test/d T)
6 m000003 assistant thinking("" "xyz") c1=f{"k":[null,true]}
7 m000004 tool "r" <c1 f error>
7 m000005 user "go on"
`,
		},
	}
}

func datasetTests() []formatTest {
	return []formatTest{
		{
			name: "mini-swe-agent",
			input: `{"info":{"exit_status":"Submitted"},"trajectory_format":"mini-swe-agent-1","instance_id":"proj-1","messages":[
{"role":"system","content":"s"},
{"role":"user","content":"u"},
{"role":"assistant","content":"a","extra":{"response":{"model":"g","usage":{"prompt_tokens":10,"completion_tokens":4,"total_tokens":14,"completion_tokens_details":{"reasoning_tokens":3}},"choices":[{"finish_reason":"STOP"}]}}},
{"role":"exit","content":"bye","extra":{"response":7}}
]}`,
			format: transcript.FormatMiniSWEAgent,
			want: `# proj-1 
2 m000001 system "s"
3 m000002 user "u"
4 m000003 assistant "a" {g end_turn} 10+4=14 cache 0/0 thinking 3
`,
			skipped: map[string]int{"role exit": 1},
		},
		{
			name: "mini-swe-agent's commands",
			input: "{\"trajectory_format\":\"mini-swe-agent-1.1\",\"messages\":[" + `
{"role":"user","content":"u"},
{"role":"assistant","content":"THOUGHT: a\n\n` + "```bash\\nls &&\\n cat x\\n```" + `"},
{"role":"user","content":"<returncode>2</returncode>\n<output>\nx\n</output>"},
{"role":"assistant","content":"` + "```bash\\na\\n``` or\\n```bash\\nb\\n```" + `"},
{"role":"user","content":"EXACTLY ONE action"},
{"role":"assistant","content":"` + "```mswea_bash_command\\npwd\\n```" + `"},
{"role":"user","content":"<returncode>0</returncode>\n<output>\n/src\n</output>"},
{"role":"assistant","content":"` + "```bash\\nend\\n```" + `"}
]}`,
			format: transcript.FormatMiniSWEAgent,
			want: `# c0001 
2 m000001 user "u"
3 m000002 assistant "THOUGHT: a" command-1=bash{"command":"ls \u0026\u0026\n cat x"}
4 m000003 tool "<returncode>2</returncode>\n<output>\nx\n</output>" <command-1 bash error>
5 m000004 assistant "` + "```bash\\na\\n``` or\\n```bash\\nb\\n```" + `"
6 m000005 user "EXACTLY ONE action" internal
7 m000006 assistant command-5=bash{"command":"pwd"}
8 m000007 tool "<returncode>0</returncode>\n<output>\n/src\n</output>" <command-5 bash success>
9 m000008 assistant "` + "```bash\\nend\\n```" + `"
`,
		},
		{
			name: "SWE-agent's commands",
			input: `{"environment":"e","trajectory":[],"history":[
{"role":"user","content":"u","message_type":"observation"},
{"role":"assistant","content":"As in ` + "```\\nx\\n```, a look:\\n```\\nls\\n```" + `","action":"ls","message_type":"action"},
{"role":"user","content":"pump.go","message_type":"observation"},
{"role":"assistant","content":"Which pump?","message_type":"action"},
{"role":"user","content":"Write a command.","message_type":"observation"}
]}`,
			format: transcript.FormatSWEAgent,
			want: `# c0001 
2 m000001 user "u"
3 m000002 assistant "As in ` + "```\\nx\\n```" + `, a look:" command-1=bash{"command":"ls"}
4 m000003 tool "pump.go" <command-1 bash success>
5 m000004 assistant "Which pump?"
6 m000005 user "Write a command." internal
`,
		},
		{
			name: "tau-bench",
			input: `[{"task_id": 0, "trial": 1, "reward": 0.0, "traj": [{"role":"user","content":"u"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"1"},{"role":"assistant","content":null,"tool_calls":[{"id":"c","function":{"name":"g","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"2"}]},
{"task_id": 1, "trial": 1, "traj": [{"role":"user","content":"v"}]}]`,
			format: transcript.FormatTauBench,
			want: `# 0/1 
1 m000001 user "u"
1 m000002 assistant c=f{}
1 m000003 tool "1" <c f success>
1 m000004 assistant c-2=g{}
1 m000005 tool "2" <c-2 g success>
! 1 call id c was used before, it is now c-2
# 1/1 
2 m000001 user "v"
`,
		},
		{
			name:   "bfcl memory",
			input:  `{"id":"q-0","topic":"T","question":[[{"role":"user","content":"a"}],[{"role":"user","content":"b"},{"role":"user","content":"c"}]]}`,
			format: transcript.FormatBFCLMemory,
			want: `# q-0 T
1 q-0#0 user "a"
1 q-0#1 user "b"
1 q-0#1-2 user "c"
`,
		},
		{
			name: "qmsum",
			input: `{"topic_list":[{"topic":"Budget"}],"specific_query_list":[{"query":"why?","answer":"no"}],"meeting_transcripts":[{"speaker":"A","content":"hello"},{"speaker":"B","content":""}]}
{"meeting_transcripts":[{"speaker":"C","content":"x"}]}`,
			format: transcript.FormatQMSum,
			want: `# 0 Budget
1 m000001 user "A: hello"
1 m000002 user "B: "
# 1 
2 m000001 user "C: x"
`,
		},
	}
}
