package transcript_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/llm/transcript"
)

const (
	call = `{"role":"assistant","tool_calls":[{"id":"a","function":{"name":"f","arguments":"{}"}},{"id":"b","function":{"name":"g","arguments":"{}"}}]}`
	user = `{"role":"user","content":"u"}`
)

func answer(id string) string {
	return `{"role":"tool","tool_call_id":"` + id + `","content":"` + id + `!"}`
}

func TestRepair(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name  string
		lines []string
		want  string
	}{
		{"calls without results", []string{user, call, answer("a"), user}, `# c0001 
1 m000001 user "u"
2 m000002 assistant a=fnull b=gnull
3 m000003 tool "a!" <a f success>
2 m000004 tool "[no result was recorded]" <b g error>
4 m000005 user "u"
! 2 call b (g) has no result, an error result stands in
`},
		{"interrupted at the end", []string{call}, `# c0001 
1 m000001 assistant a=fnull b=gnull
1 m000002 tool "[no result was recorded]" <a f error>
1 m000003 tool "[no result was recorded]" <b g error>
! 1 call a (f) has no result, an error result stands in
! 1 call b (g) has no result, an error result stands in
`},
		{"orphans and seconds", []string{answer("x"), user, call, answer("a"), answer("b"), answer("a"), answer("")}, `# c0001 
2 m000001 user "u"
3 m000002 assistant a=fnull b=gnull
4 m000003 tool "a!" <a f success>
5 m000004 tool "b!" <b g success>
! 1 tool result without a call dropped (call id "x")
! 6 second result of a tool call dropped (call id "a")
! 7 tool result without a call dropped (call id "")
`},
		{"late and out of order", []string{call, answer("b"), user, answer("a")}, `# c0001 
1 m000001 assistant a=fnull b=gnull
4 m000002 tool "a!" <a f success>
2 m000003 tool "b!" <b g success>
3 m000004 user "u"
! 4 result of call a came late, moved to its call in line 1
`},
		{"out of order", []string{call, answer("b"), answer("a")}, `# c0001 
1 m000001 assistant a=fnull b=gnull
3 m000002 tool "a!" <a f success>
2 m000003 tool "b!" <b g success>
! 3 results put in the order of the calls in line 1
`},
		{"one id for two calls and two messages", []string{
			strings.ReplaceAll(call, `"b"`, `"a"`), answer("a"), answer("a"), user, call, answer("a"), answer("b"),
		}, `# c0001 
1 m000001 assistant a=fnull a-2=gnull
2 m000002 tool "a!" <a f success>
3 m000003 tool "a!" <a-2 g success>
4 m000004 user "u"
5 m000005 assistant a-3=fnull b=gnull
6 m000006 tool "a!" <a-3 f success>
7 m000007 tool "b!" <b g success>
! 1 call id a was used before, it is now a-2
! 5 call id a was used before, it is now a-3
`},
		{"recorded message ids that clash", []string{
			`{"role":"user","content":"1"}`, `{"role":"user","content":"2","id":"m000001"}`, `{"role":"user","content":"3","id":"m000001"}`,
		}, `# c0001 
1 m000001-3 user "1"
2 m000001 user "2"
3 m000001-2 user "3"
`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			input := strings.ReplaceAll(strings.Join(tt.lines, "\n"), `"arguments":"{}"`, `"arguments":""`)
			file, err := transcript.Read(strings.NewReader(input), transcript.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if got := render(file); got != tt.want {
				t.Errorf("got:\n%s\nwant:\n%s", got, tt.want)
			}
			if err := file.Conversations[0].Validate(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestResultWithoutIDBelongsToTheNewestMessage(t *testing.T) {
	t.Parallel()
	input := `{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"1"}},{"function":{"name":"g","arguments":"2"}}]}
{"role":"tool","name":"g","content":"from g"}
{"role":"tool","content":"from f"}
`
	file, err := transcript.Read(strings.NewReader(input), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `# c0001 
1 m000001 assistant call_000001=f1 call_000002=g2
3 m000002 tool "from f" <call_000001 f success>
2 m000003 tool "from g" <call_000002 g success>
! 3 results put in the order of the calls in line 1
`
	if got := render(file); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}

func TestValidate(t *testing.T) {
	t.Parallel()
	file, err := transcript.Read(strings.NewReader(strings.Join([]string{user, call, answer("a"), answer("b"), user}, "\n")), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	valid := file.Conversations[0].Entries
	pick := func(at ...int) transcript.Conversation {
		var c transcript.Conversation
		for _, i := range at {
			c.Entries = append(c.Entries, valid[i])
		}
		return c
	}
	noID := pick(0)
	noID.Entries[0].Message.ID = ""
	badRole := pick(0)
	badRole.Entries[0].Message.Role = "robot"
	userCalls := pick(1, 2, 3)
	userCalls.Entries[0].Message.Role = "user"
	tests := map[string]struct {
		c    transcript.Conversation
		want string
	}{
		"whole":        {pick(0, 1, 2, 3, 4), ""},
		"swapped":      {pick(0, 1, 3, 2, 4), `message 2: a result of call "b" is not due here`},
		"missing":      {pick(0, 1, 2, 4), "message 3: call b has no result before it"},
		"missing last": {pick(0, 1, 2), "call b has no result"},
		"orphan":       {pick(0, 2), `message 1: a result of call "a" is not due here`},
		"twice":        {pick(0, 0), `message 1: id "m000001" is empty or stands twice`},
		"no id":        {noID, `message 0: id "" is empty or stands twice`},
		"role":         {badRole, `message 0: unknown role "robot"`},
		"user calls":   {userCalls, "message 0: a user message has tool calls"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := ""
			if err := tt.c.Validate(); err != nil {
				got = err.Error()
			}
			if got != tt.want {
				t.Errorf("got %q, want %q", got, tt.want)
			}
		})
	}
}

func TestCallIDsThatCannotBeKept(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	input := `{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":""}},{"id":"` + long + `","function":{"name":"g","arguments":""}}]}
{"role":"tool","content":"1"}
{"role":"tool","tool_call_id":"` + long + `","content":"2"}
{"role":"assistant","tool_calls":[{"id":"call_000001","function":{"name":"f","arguments":""}}]}
{"role":"tool","tool_call_id":"call_000001","content":"3"}
`
	file, err := transcript.Read(strings.NewReader(input), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	want := `# c0001 
1 m000001 assistant call_000001=fnull call_000002=gnull
2 m000002 tool "1" <call_000001 f success>
3 m000003 tool "2" <call_000002 g success>
4 m000004 assistant call_000001-2=fnull
5 m000005 tool "3" <call_000001-2 f success>
! 1 call id ` + long[:64] + ` is too long, it is now call_000002
! 4 call id call_000001 was used before, it is now call_000001-2
`
	if got := render(file); got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
}
