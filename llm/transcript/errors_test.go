package transcript_test

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/mortise-dev/mortise/llm/transcript"
)

const session = `{"type":"session","id":"s"}` + "\n"

func piUser(text string) string {
	return `{"type":"message","message":{"role":"user","content":"` + text + `"}}` + "\n"
}

func TestErrors(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`[`, 600) + strings.Repeat(`]`, 600)
	tests := []struct {
		name, input string
		want        string // part of the message
		is          error
	}{
		{"empty", "", "transcript: the file is empty", transcript.ErrEmpty},
		{"blank", " \r\n\t\n", "the file is empty", transcript.ErrEmpty},
		{"only a byte order mark", "\xEF\xBB\xBF", "the file is empty", transcript.ErrEmpty},
		{"prose", "\n\nMIT License\n", "line 3: no JSON: not a recorded session; understood are: pi sessions", transcript.ErrUnknownFormat},
		{"other JSON", `{"tests": {"a": true}}`, "line 1: not a recorded session", transcript.ErrUnknownFormat},
		{"other types", `{"type":"a"}` + "\n" + `{"type":"b"}`, "not a recorded session", transcript.ErrUnknownFormat},
		{"a list of numbers", `[1, 2]`, "line 1: not an object: not a recorded session", transcript.ErrUnknownFormat},
		{"an empty list", `[]`, "an empty list: the recording holds no messages", transcript.ErrNoMessages},
		{"no messages but others", `{"type":"session_meta","payload":{"id":"x"}}` + "\n" + `{"type":"event_msg","payload":{"type":"task_started"}}`, "holds no messages in the format codex; found are 1 x event task_started; 1 x session_meta", transcript.ErrNoMessages},
		{"an empty Gemini CLI session", `{"sessionId":"x","projectHash":"y","messages":[{"type":"info","content":"hi"}]}`, "in the format gemini_cli; found are fields content, type; 1 x info", transcript.ErrNoMessages},
		{"no messages", session, "the recording holds no messages", transcript.ErrNoMessages},
		{"only an orphan", `{"role":"tool","tool_call_id":"x","content":""}`, "holds no messages", transcript.ErrNoMessages},
		{"binary", "\x7fELF\x02\x01\x01\x00\x00\x00", "the file is binary", transcript.ErrUnknownFormat},
		{"UTF-16 with mark", "\xFF\xFE{\x00", "UTF-16 text, convert it to UTF-8", transcript.ErrUnknownFormat},
		{"UTF-16 without mark", "{\x00\"\x00a\x00", "UTF-16 text", transcript.ErrUnknownFormat},
		{"gzip", "\x1F\x8B\x08", "gzip data, unpack it first", transcript.ErrUnknownFormat},
		{"zstd", "\x28\xB5\x2F\xFD", "Zstandard data", transcript.ErrUnknownFormat},
		{"broken line", session + piUser("a") + "{oops}\n" + piUser("b"), "transcript: line 3: invalid JSON: invalid character 'o'", nil},
		{"cut off line", session + `{"type":"message","mess`, "transcript: line 2: invalid JSON: unexpected end of JSON input (the line is cut off)", nil},
		{"two values in a line", session + `{"type":"x"} {"type":"y"}`, "line 2: invalid JSON", nil},
		{"broken first line", `{oops}` + "\n" + session, "line 1: invalid JSON", nil},
		{"cut off first line", `{"type":"ses` + "\n" + piUser("a"), "line 1: invalid JSON: unexpected end of JSON input (the line is cut off)", nil},
		{"broken document", "[\n  {\"role\": \"user\",\n   \"content\": oops}\n]", "transcript: line 3: invalid JSON: invalid character 'o'", nil},
		{"broken object", "{\n \"messages\": [\n  {\"role\": }\n ]}", "transcript: line 3: invalid JSON", nil},
		{"cut off document", "[\n {\"role\":\"user\",\"content\":\"a\"},\n", "line 2: invalid JSON: unexpected end", nil},
		{"bad message in a document", "[\n{\"role\":\"user\",\"content\":\"a\"},\n{\"role\":\"robot\"}]", `line 3: unknown role "robot"`, nil},
		{"bad message in a field", "{\"messages\":[\n{\"role\":\"user\",\"content\":\"a\"},\n7]}", "line 3: a message is not an object", nil},
		{"deep", session + `{"type":"x","y":` + deep + `}`, "line 2: too large: JSON is nested deeper than 512 levels", transcript.ErrTooLarge},
		{"no role", session + `{"type":"message","message":{"content":"x"}}`, "line 2: a message has no role", nil},
		{"no type", session + `{"role":"user"}`, "line 2: an entry has no type", nil},
		{"no message", session + `{"type":"message"}`, "line 2: an entry of type message has no message", nil},
		{"content is a number", `{"role":"user","content":5}`, "line 1: content is neither text nor a list of blocks", nil},
		{"block is a number", `{"role":"user","content":[5]}`, "line 1: a content block is not an object", nil},
		{"call without a name", `{"role":"assistant","tool_calls":[{"id":"a","function":{}}]}`, "line 1: a tool call has no name", nil},
		{"call without a function", `{"role":"assistant","tool_calls":[{"id":"a"}]}`, "line 1: a tool call has no function", nil},
		{"calls are text", `{"role":"assistant","tool_calls":"x"}`, "line 1: message: json:", nil},
		{"turn without a speaker", `{"meeting_transcripts":[{"content":"x"}]}`, "line 1: a turn needs speaker and content", nil},
		{"question that is no list", `{"id":"q","question":["x"]}`, "line 1: a turn is not a list of messages", nil},
		{"mixed records", `{"messages":[{"role":"user","content":"x"}]}` + "\n" + `{"a":1}`, "line 2: the record holds no conversation", nil},
		{"claude without message", `{"type":"summary"}` + "\n" + `{"type":"user"}`, "line 2: an entry of type user has no message", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			file, err := transcript.Read(strings.NewReader(tt.input), transcript.Options{})
			if err == nil {
				t.Fatalf("no error, but\n%s", render(file))
			}
			if !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %q, want %q in it", err, tt.want)
			}
			if tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("error %q is not %q", err, tt.is)
			}
			if le, ok := errors.AsType[*transcript.LineError](err); tt.is == nil && (!ok || le.Line < 1) {
				t.Errorf("error %q names no line", err)
			}
		})
	}
}

func TestLenient(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("x", 300)
	input := session + piUser("a") + "{oops}\n" + piUser(long) + `{"type":"message","message":{}}` + "\n" + piUser("b") + `{"type":"mess`
	file, err := transcript.Read(strings.NewReader(input), transcript.Options{Lenient: true, MaxLine: 200})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := render(file), "# s \n2 m000001 user \"a\"\n6 m000002 user \"b\"\n"; got != want {
		t.Errorf("got:\n%s\nwant:\n%s", got, want)
	}
	var lines []int
	for i := range file.Broken {
		lines = append(lines, file.Broken[i].Line)
	}
	if len(lines) != 4 || lines[0] != 3 || lines[1] != 4 || lines[2] != 5 || lines[3] != 7 {
		t.Errorf("broken %v, want lines 3, 4, 5 and 7", file.Broken)
	}
	if !errors.Is(&file.Broken[1], transcript.ErrTooLarge) {
		t.Errorf("line 4: %v, want ErrTooLarge", file.Broken[1].Err)
	}
}

func TestLenientReadsTheRestOfADocument(t *testing.T) {
	t.Parallel()
	input := "[\n{\"role\":\"user\",\"content\":\"a\"},\n{\"role\":\"robot\"},\n{\"role\":\"user\",\"content\":\"b\"}]"
	for name, input := range map[string]string{"list": input, "field": `{"messages":` + input + `}`} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file, err := transcript.Read(strings.NewReader(input), transcript.Options{Lenient: true})
			if err != nil {
				t.Fatal(err)
			}
			if got, want := render(file), "# c0001 \n2 m000001 user \"a\"\n4 m000002 user \"b\"\n"; got != want {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
			if len(file.Broken) != 1 || file.Broken[0].Line != 3 {
				t.Errorf("broken %v, want line 3", file.Broken)
			}
		})
	}
}

func TestLenientGivesUp(t *testing.T) {
	t.Parallel()
	_, err := transcript.Read(strings.NewReader(session+piUser("a")+strings.Repeat("{oops}\n", 1100)), transcript.Options{Lenient: true})
	if !errors.Is(err, transcript.ErrTooLarge) || !strings.Contains(err.Error(), "more than 1000 broken lines") {
		t.Errorf("error %v", err)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	call := `{"type":"tool_use","name":"f"}`
	calls := `{"role":"assistant","content":[` + call + strings.Repeat(","+call, 4096) + `]}`
	tests := []struct {
		name, input, want string
		options           transcript.Options
	}{
		{"a long line", session + piUser(strings.Repeat("x", 100)), "line 2: too large: more than 64 bytes in one line (MaxLine)", transcript.Options{MaxLine: 64}},
		{"a large file of lines", session + strings.Repeat(piUser("x"), 100), "too large: more than 1000 bytes (MaxBytes)", transcript.Options{MaxBytes: 1000}},
		{"a large file, leniently", session + strings.Repeat(piUser("x"), 100), "too large: more than 1000 bytes (MaxBytes)", transcript.Options{MaxBytes: 1000, Lenient: true}},
		{"a large document", "[" + strings.Repeat(" ", 1000) + "]", "too large: more than 1000 bytes (MaxBytes)", transcript.Options{MaxBytes: 1000}},
		{"many calls", calls, "line 1: too large: more than 4096 tool calls in one message", transcript.Options{}},
		{"many values", session + `{"type":"x","y":[0` + strings.Repeat(",0", 5<<20) + `]}`, "line 2: too large: more than 4194304 JSON values", transcript.Options{}},
		{"negative", session, "options: MaxBytes and MaxLine must not be negative", transcript.Options{MaxBytes: -1}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			_, err := transcript.Read(strings.NewReader(tt.input), tt.options)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestExactLimitsPass(t *testing.T) {
	t.Parallel()
	line := piUser("x")
	input := session + line
	_, err := transcript.Read(strings.NewReader(input), transcript.Options{MaxBytes: int64(len(input)), MaxLine: int64(len(line) - 1)})
	if err != nil {
		t.Error(err)
	}
}

// zeros is an endless line, so that a reader that buffers it would never end.
type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '0'
	}
	return len(p), nil
}

func TestEndlessLine(t *testing.T) {
	t.Parallel()
	r := io.MultiReader(strings.NewReader(session), zeros{})
	_, err := transcript.Read(r, transcript.Options{MaxBytes: 1 << 20, MaxLine: 1 << 10, Lenient: true})
	if !errors.Is(err, transcript.ErrTooLarge) {
		t.Errorf("error %v, want ErrTooLarge", err)
	}
}

func TestSkippedKindsAreBounded(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(session + piUser("x"))
	for i := range 200 {
		b.WriteString(`{"type":"kind` + strings.Repeat("i", i) + `"}` + "\n")
	}
	file, err := transcript.Read(strings.NewReader(b.String()), transcript.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if len(file.Skipped) != 65 || file.Skipped["other"] != 200-64 {
		t.Errorf("%d kinds, other %d", len(file.Skipped), file.Skipped["other"])
	}
}

func TestReaderErrorsAreKept(t *testing.T) {
	t.Parallel()
	broken := errors.New("disk on fire")
	for name, head := range map[string]string{"start": "", "lines": session + piUser("x"), "document": "["} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := io.MultiReader(strings.NewReader(head), iotest.ErrReader(broken))
			_, err := transcript.Read(r, transcript.Options{Lenient: true})
			if !errors.Is(err, broken) {
				t.Errorf("error %v", err)
			}
		})
	}
}

func TestOpen(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "wrong-name.txt")
	if err := os.WriteFile(path, []byte(session+piUser("x")), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := transcript.Open(path, transcript.Options{}); err != nil {
		t.Error(err)
	}
	_, err := transcript.Open(path, transcript.Options{MaxLine: 3})
	if err == nil || !strings.HasPrefix(err.Error(), "transcript: wrong-name.txt: line 1: ") {
		t.Errorf("error %v", err)
	}
	if _, err := transcript.Open(path+"x", transcript.Options{}); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("error %v, want ErrNotExist", err)
	}
	if _, err := transcript.Open(filepath.Dir(path), transcript.Options{}); err == nil {
		t.Error("a folder was read")
	}
}
