package transcript_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/mortise-dev/mortise/llm/transcript"
)

func ExampleRead() {
	recording := `
{"role": "user", "content": "How many files are there?"}
{"role": "assistant", "tool_calls": [{"id": "c1", "function": {"name": "bash", "arguments": "{\"command\": \"ls | wc -l\"}"}}]}
`
	file, err := transcript.Read(strings.NewReader(recording), transcript.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	conversation := file.Conversations[0]
	for _, m := range conversation.Messages() {
		fmt.Printf("%s: %q\n", m.Role, m.Text())
	}
	for _, note := range conversation.Notes {
		fmt.Printf("line %d: %s\n", note.Line, note.What)
	}
	// Output:
	// user: "How many files are there?"
	// assistant: ""
	// tool: "[no result was recorded]"
	// line 3: call c1 (bash) has no result, an error result stands in
}

func ExampleOpen() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "session.jsonl")
	if err := os.WriteFile(path, []byte(`{"role":"user","content":"hi"}`+"\n"+`{"role":"assis`), 0o600); err != nil {
		fmt.Println(err)
		return
	}

	_, err = transcript.Open(path, transcript.Options{})
	fmt.Println(err)

	file, err := transcript.Open(path, transcript.Options{Lenient: true})
	fmt.Println(file.Format, len(file.Conversations[0].Entries), len(file.Broken), err)
	// Output:
	// transcript: session.jsonl: line 2: invalid JSON: unexpected end of JSON input (the line is cut off)
	// openai 1 1 <nil>
}
