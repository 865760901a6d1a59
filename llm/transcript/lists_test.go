package transcript_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/llm/transcript"
)

// TestListFormats reads message lists in which a message holds more than text:
// calls, results, and several steps of one answer.
func TestListFormats(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]struct {
		format transcript.Format
		text   string
	}{
		"ai_sdk_ui.json": {transcript.FormatAISDKUI, `# chat-7 
4 u1 user "Is the pump in bay 4 running?" image(image/png QUJD bay4.png)
7 a1 assistant thinking("Ask both sensors." "") "I will ask the sensors." t1=readSensor{"bay":4} t2=camera{"bay":4}
7 a1-2 tool "{\"rpm\":910}" <t1 readSensor success>
7 a1-3 tool "the lens is covered" <t2 camera error>
7 a1-4 assistant t3=log{"line":"bay 4"}
7 a1-5 tool "written" <t3 log success>
7 a1-6 assistant "It runs at 910 rpm." t4=readSensor{"bay":5}
7 m000008 tool "[no result was recorded]" <t4 readSensor error>
! 7 call t4 (readSensor) has no result, an error result stands in
`},
		"ai_sdk_ui_v3.json": {transcript.FormatAISDKUI, `# c0001 
2 u1 user "Which tide is it?"
3 a1 assistant t1=tide{"port":"Husum"}
3 a1-2 tool "{\"tide\":\"low\"}" <t1 tide success>
3 a1-3 assistant "It is low tide."
`},
		"ai_sdk.json": {transcript.FormatAISDK, `# c0001 
2 m000001 system "Be brief."
3 m000002 user "Weigh the crates." image( https://x.test/crates.png )
4 m000003 assistant thinking("Two crates." "") "Weighing." t1=weigh{"crate":"K-11"} t2=weigh{"crate":"K-12"}
9 m000004 tool "{\"kg\":31}" <t1 weigh success>
9 m000005 tool "the scale is busy" <t2 weigh error>
12 m000006 assistant t3=weigh{"crate":"K-12"}
14 m000007 tool "28 kg" <t3 weigh success>
16 m000008 assistant "31 and 28 kg."
`},
		"bedrock_converse.json": {transcript.FormatBedrock, `# c0001 
1 m000001 system "Be brief."
5 m000002 user "Is valve 9 shut?" image(image/png QUJD ) "valve 9: north wall"
9 m000003 assistant thinking("Look it up." "sig") "I will look." t1=valve{"number":9}
13 m000004 tool "{\"shut\":true}" " since noon" <t1 valve success>
16 m000005 assistant t2=valve{"number":10}
17 m000006 tool "no valve 10" <t2 valve error>
18 m000007 assistant "Valve 9 is shut."
`},
		"anthropic_server_tools.json": {transcript.FormatAnthropic, `# c0001 
3 m000001 user "Find the ferry timetable."
4 m000002 assistant "I will search." s1=web_search{"query":"ferry timetable"}
4 m000003 tool "Timetable\nhttps://x.test/ferry\n" "Harbour\nhttps://x.test/harbour\n" <s1 web_search success>
4 m000004 assistant "The ferry leaves at 9:40." s2=web_search{"query":"fares"} { end_turn} 10+5=15 cache 0/0 thinking 0
4 m000005 tool "max_uses_exceeded" <s2 web_search error>
`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := transcript.Open(filepath.Join("testdata", name), transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := render(file); got != want.text || file.Format != want.format {
				t.Errorf("%s:\n%s\nwant %s:\n%s", file.Format, got, want.format, want.text)
			}
			for i := range file.Conversations {
				if err := file.Conversations[i].Validate(); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestNothingReadIsAnError gives lists whose messages are in a form that is not
// known: the error must name what was seen and what is understood.
func TestNothingReadIsAnError(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ input, seen string }{
		"another field":       {`[{"role":"user","body":"hi"},{"role":"assistant","body":"ho"}]`, "fields body, role"},
		"parts without types": {`[{"role":"user","parts":[{"speech":"hi"}]}]`, "fields parts, role; 1 x content block without a type"},
		"unknown blocks":      {`{"messages":[{"role":"user","content":[{"type":"hologram","data":"x"}]}]}`, "1 x content block hologram"},
		"untyped blocks":      {`[{"role":"user","content":[{"speech":"x"}]}]`, "content block without a type, with speech"},
		"behind a system":     {`[{"role":"system","content":"be brief"},{"role":"user","body":"hi"}]`, "2 message(s) in the format openai"},
		"JSON lines":          {`{"role":"user","body":"hi"}` + "\n" + `{"role":"assistant","body":"ho"}`, "fields body, role"},
		"hostile names":       {`[{"role":"user","` + strings.Repeat("k", 5000) + `":1}]`, "fields " + strings.Repeat("k", 40) + ", role"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := transcript.Read(strings.NewReader(tc.input), transcript.Options{})
			if !errors.Is(err, transcript.ErrNoMessages) {
				t.Fatalf("error %v, want ErrNoMessages", err)
			}
			for _, want := range []string{"nothing could be read", tc.seen, "understood are: pi sessions", "Bedrock Converse"} {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("error %q lacks %q", err, want)
				}
			}
		})
	}
}

// TestStrangeFieldsDoNoHarm has fields of the other formats with values of
// another kind, in messages that are readable without them.
func TestStrangeFieldsDoNoHarm(t *testing.T) {
	t.Parallel()
	for _, field := range []string{
		"toolUse", "toolResult", "reasoningContent", "document", "video", "audio", "image", "toolInvocation", "toolInvocations", "parts",
		"cachePoint", "json", "mediaType", "url", "state", "output", "result", "args",
	} {
		for _, value := range []string{`null`, `7`, `"x"`, `[3]`, `{"content":8,"source":"x","format":{}}`, `true`} {
			if field == "parts" && value == "[3]" {
				continue // a part must be an object
			}
			input := `[{"role":"user","content":[{"type":"text","text":"hi","` + field + `":` + value + `}],"` + field + `":` + value + `}]`
			file, err := transcript.Read(strings.NewReader(input), transcript.Options{})
			if err != nil || file.Conversations[0].Entries[0].Message.Text() != "hi" {
				t.Errorf("%s: %s: %v", field, value, err)
			}
		}
	}
}

// TestWhatTheUserDidNotWrite reads what Claude Code puts into entries of the
// user. None of it may come out as words of the user.
func TestWhatTheUserDidNotWrite(t *testing.T) {
	t.Parallel()
	const summary = `{"type":"user","uuid":"c1","sessionId":"S","isCompactSummary":true,"message":{"role":"user","content":"This session is being continued"}}` + "\n"
	const request = `{"type":"user","uuid":"u1","sessionId":"S","message":{"role":"user","content":"go on"}}` + "\n"
	for name, tc := range map[string]struct {
		input, want string
		skipped     int
	}{
		"a summary of what is in the file": {request + summary, "# S \n1 u1 user \"go on\"\n", 1},
		"a summary of what is not in the file": {
			summary + request,
			"# S \n1 c1 system \"This session is being continued\"\n2 u1 user \"go on\"\n", 0,
		},
		"a task notification": {
			request + `{"type":"user","uuid":"n1","message":{"role":"user","content":"<task-notification>\n<task-id>b1</task-id>\n</task-notification>\nRead the output file"}}`,
			"# S \n1 u1 user \"go on\"\n2 n1 user \"<task-notification>\\n<task-id>b1</task-id>\\n</task-notification>\\nRead the output file\" internal\n", 0,
		},
		"an interrupt": {
			request + `{"type":"user","uuid":"n1","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user for tool use]"}]}}`,
			"# S \n1 u1 user \"go on\"\n2 n1 user \"[Request interrupted by user for tool use]\" internal\n", 0,
		},
		"an interrupt and words of the user": {
			`{"type":"user","uuid":"u1","sessionId":"S","message":{"role":"user","content":[{"type":"text","text":"[Request interrupted by user]"},{"type":"text","text":"use port 81"}]}}`,
			"# S \n1 u1 user \"use port 81\"\n1 u1-2 user \"[Request interrupted by user]\" internal\n", 0,
		},
		"words of the user that name them": {
			`{"type":"user","uuid":"u1","sessionId":"S","message":{"role":"user","content":"why [Request interrupted by user]? what is <task-notification>?"}}`,
			"# S \n1 u1 user \"why [Request interrupted by user]? what is <task-notification>?\"\n", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := transcript.Read(strings.NewReader(tc.input), transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := render(file); got != tc.want || file.Skipped["compact summary"] != tc.skipped {
				t.Errorf("skipped %v, got:\n%s\nwant:\n%s", file.Skipped, got, tc.want)
			}
		})
	}
}

// TestRealCompactions reads real sessions that were compacted: each summary is
// counted, and none is read as words of the user.
func TestRealCompactions(t *testing.T) {
	t.Parallel()
	dir := sharedTranscripts(t)
	for _, path := range recordings(t, dir) {
		if !strings.HasPrefix(path, compactions) {
			continue
		}
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			path = filepath.Join(dir, path)
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			file, err := transcript.Open(path, transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if want := strings.Count(string(data), `"isCompactSummary":true`); file.Skipped["compact summary"] != want || want == 0 {
				t.Errorf("%d summaries counted, want %d", file.Skipped["compact summary"], want)
			}
			for _, e := range file.Conversations[0].Entries {
				text := e.Message.Text()
				written := strings.HasPrefix(text, "This session is being continued") || strings.HasPrefix(text, "[Request interrupted by user")
				if written && e.Message.Role == abi.RoleUser && e.Message.Visibility != abi.VisibilityInternal {
					t.Errorf("line %d is read as words of the user: %.60q", e.Line, text)
				}
			}
		})
	}
}
