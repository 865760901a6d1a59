package openai_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"
	sdk "github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/packages/ssestream"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/internal/testskip"
	"github.com/mortise-dev/mortise/llm"
	"github.com/mortise-dev/mortise/llm/openai"
)

// recording is a request that a real server answered.
type recording struct {
	name, sent string
	status     int
	media      string
	body       string
}

// TestRecordings reads what OpenAI and OpenRouter answered other programs, and compares with
// what the vendor's own library reads in it.
func TestRecordings(t *testing.T) {
	t.Parallel()
	all := append(cassettes(t), traces(t)...)
	kinds := map[string]int{}
	for _, r := range all {
		t.Run(r.name, func(t *testing.T) {
			t.Parallel()
			replay(t, r)
		})
		kinds[fmt.Sprintf("%s %d", strings.Split(r.media, ";")[0], r.status)]++
	}
	if kinds["application/json 200"] < 25 || kinds["text/event-stream 200"] < 20 || kinds["application/json 429"] == 0 {
		t.Errorf("too few recordings were found: %v", kinds)
	}
}

func replay(t *testing.T, r recording) {
	t.Helper()
	w := &wire{status: r.status, media: r.media, body: r.body}
	m := open(t, w, openai.Config{API: openai.Chat})
	stream := strings.HasPrefix(r.media, "text/event-stream")
	ask := func() (*abi.Response, error) {
		if stream {
			return streamed(t.Context(), m, question("Hi"))
		}
		return m.Infer(t.Context(), question("Hi"))
	}
	got, err := ask()
	if r.status == http.StatusTooManyRequests {
		wantKind(t, err, llm.KindRateLimited, "Rate limit exceeded")
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	want := vendorReads(t, r, stream)
	if shown(got) != want {
		t.Errorf("got  %s\nwant %s", shown(got), want)
	}
	if got.Model == "" || len(got.Message.Content)+len(got.Message.ToolCalls) == 0 {
		t.Errorf("empty: %+v", got)
	}
}

// comments keep a connection alive. This version of the library takes them for events.
var comments = regexp.MustCompile(`(?m)^:.*\r?\n\r?\n`)

// vendorReads shows the answer as OpenAI's library reads it.
func vendorReads(t *testing.T, r recording, stream bool) string {
	t.Helper()
	var acc sdk.ChatCompletionAccumulator
	c := &acc.ChatCompletion
	if stream {
		response := &http.Response{Header: http.Header{"Content-Type": {r.media}}, Body: io.NopCloser(strings.NewReader(comments.ReplaceAllString(r.body, "")))}
		s := ssestream.NewStream[sdk.ChatCompletionChunk](ssestream.NewDecoder(response), nil)
		reason := ""
		for s.Next() {
			chunk := s.Current()
			acc.AddChunk(chunk)
			if len(chunk.Choices) > 0 && chunk.Choices[0].FinishReason != "" {
				reason = chunk.Choices[0].FinishReason
			}
		}
		if s.Err() != nil {
			t.Fatal(s.Err())
		}
		c.Choices[0].FinishReason = reason
	} else if err := json.Unmarshal([]byte(r.body), c); err != nil {
		t.Fatal(err)
	}
	message := c.Choices[0].Message
	out := &abi.Response{StopReason: abi.StopEndTurn}
	if message.Content != "" {
		out.Message.Content = append(out.Message.Content, abi.Text(message.Content))
	}
	for _, call := range message.ToolCalls {
		out.Message.ToolCalls = append(out.Message.ToolCalls, abi.ToolCall{ID: call.ID, Name: call.Function.Name, Arguments: object(t, call.Function.Arguments)})
	}
	if f := message.FunctionCall; f.Name != "" { //nolint:staticcheck // deprecated, and recorded
		out.Message.ToolCalls = append(out.Message.ToolCalls, abi.ToolCall{ID: "call_" + strings.Repeat("x", 20), Name: f.Name, Arguments: object(t, f.Arguments)})
	}
	switch c.Choices[0].FinishReason {
	case "length":
		out.StopReason = abi.StopMaxTokens
	case "tool_calls", "function_call":
		out.StopReason = abi.StopToolUse
	}
	if u := c.Usage; u.TotalTokens > 0 {
		out.Usage = &abi.Usage{
			PromptTokens: u.PromptTokens, CompletionTokens: u.CompletionTokens, TotalTokens: u.TotalTokens,
			CacheReadTokens: u.PromptTokensDetails.CachedTokens, ThinkingTokens: u.CompletionTokensDetails.ReasoningTokens,
		}
	}
	return shown(out)
}

func object(t *testing.T, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// payloads is the folder of recordings. They are not part of the repository.
func payloads(t *testing.T, name string) string {
	t.Helper()
	dir := os.Getenv("MORTISE_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, "data", "payloads", name)
	if _, err := os.Stat(dir); err != nil {
		testskip.Skip(t, "no recordings in data/payloads of the shared folder (set MORTISE_SHARED): %v", err)
	}
	return dir
}

func files(t *testing.T, dir, ext string) []string {
	t.Helper()
	var out []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if filepath.Ext(path) == ext {
			out = append(out, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// cassettes are recordings in the format of go-vcr.
func cassettes(t *testing.T) []recording {
	t.Helper()
	var out []recording
	for _, path := range files(t, payloads(t, filepath.Join("fantasy", "TestOpenAICommon")), ".yaml") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		var c struct {
			Interactions []struct {
				Request struct {
					Body string
				}
				Response struct {
					Body    string
					Headers map[string][]string
					Code    int
				}
			}
		}
		if err := yaml.Unmarshal(data, &c); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		for i, x := range c.Interactions {
			name := fmt.Sprintf("%s/%s/%d", filepath.Base(filepath.Dir(path)), filepath.Base(path), i)
			out = append(out, recording{name, x.Request.Body, x.Response.Code, x.Response.Headers["Content-Type"][0], x.Response.Body})
		}
	}
	return out
}

// traces are recordings in the format of httprr: sizes, a request, a response.
func traces(t *testing.T) []recording {
	t.Helper()
	var out []recording
	for _, path := range files(t, payloads(t, filepath.Join("langchaingo", "llms", "openai")), ".httprr") {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		_, data, _ = bytes.Cut(data, []byte("\n"))
		for i := 0; len(data) > 0; i++ {
			var request, response int
			line, rest, _ := bytes.Cut(data, []byte("\n"))
			if _, err := fmt.Sscan(string(line), &request, &response); err != nil {
				t.Fatalf("%s: %q: %v", path, line, err)
			}
			r := recording{name: fmt.Sprintf("%s/%d", filepath.Base(path), i), sent: string(rest[:request])}
			r.read(t, rest[request:request+response])
			if strings.Contains(r.sent, "/chat/completions HTTP") {
				out = append(out, r)
			}
			data = rest[request+response:]
		}
	}
	return out
}

func (r *recording) read(t *testing.T, data []byte) {
	t.Helper()
	response, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(data)), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	r.status, r.media, r.body = response.StatusCode, response.Header.Get("Content-Type"), string(body)
}
