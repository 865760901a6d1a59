package mortise_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	mortise "github.com/mortise-dev/mortise/sdk/go"
)

// value is a type of the contract.
type value interface {
	mortise.Marshaler
	mortise.Unmarshaler
}

// fresh returns a new value of the type that the name of a vector starts with.
func fresh(t *testing.T, path string) value {
	t.Helper()
	kind, _, _ := strings.Cut(filepath.Base(path), ".")
	switch kind {
	case "description":
		return new(mortise.Description)
	case "event":
		return new(mortise.Event)
	case "reply":
		return new(mortise.Reply)
	case "tool_call":
		return new(mortise.ToolCall)
	case "tool_result":
		return new(mortise.ToolResult)
	case "tool_request":
		return new(mortise.ToolRequest)
	case "tool_reply":
		return new(mortise.ToolReply)
	case "validate_request":
		return new(mortise.ValidateRequest)
	case "validation":
		return new(mortise.Validation)
	case "summarize_request":
		return new(mortise.SummarizeRequest)
	case "summary":
		return new(mortise.Summary)
	case "admit_request":
		return new(mortise.AdmitRequest)
	case "decision":
		return new(mortise.Decision)
	case "notice":
		return new(mortise.Notice)
	}
	t.Fatalf("%s: no type has this name", path)
	return nil
}

// vectors returns the files of the golden vectors in a folder.
func vectors(tb testing.TB, folder string, atLeast int) map[string][]byte {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", "testdata", "abi", folder, "*.msgpack"))
	if err != nil {
		tb.Fatal(err)
	}
	if len(paths) < atLeast {
		tb.Fatalf("%d vectors in %q, want at least %d: the golden vectors belong to the repository", len(paths), folder, atLeast)
	}
	files := map[string][]byte{}
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			tb.Fatal(err)
		}
		files[path] = data
	}
	return files
}

// wholeEvent is an Event for encoding/json, which does not know views.
type wholeEvent struct {
	*mortise.Event

	Messages []mortise.Message `json:"messages,omitempty"`
}

// text returns v as compact JSON, with the keys of objects sorted.
func text(t *testing.T, v any) string {
	t.Helper()
	if e, ok := v.(*mortise.Event); ok {
		whole := wholeEvent{Event: e}
		for _, m := range e.Messages {
			whole.Messages = append(whole.Messages, m.Message())
		}
		if err := e.Messages.Err(); err != nil {
			t.Fatal(err)
		}
		v = whole
	}
	return sorted(t, compact(t, v))
}

// sorted returns JSON with the keys of objects sorted and numbers as they are.
func sorted(t *testing.T, data string) string {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	return compact(t, v)
}

func compact(t *testing.T, v any) string {
	t.Helper()
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		t.Fatal(err)
	}
	return strings.TrimSpace(out.String())
}

// fileBeside returns the JSON file that belongs to a vector.
func fileBeside(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(strings.TrimSuffix(path, ".msgpack") + ".json")
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestGolden(t *testing.T) {
	t.Parallel()
	for path, data := range vectors(t, ".", 40) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			v := fresh(t, path)
			if err := mortise.Unmarshal(data, v); err != nil {
				t.Fatal(err)
			}
			if !strings.HasSuffix(path, "reply.binary.msgpack") {
				want := sorted(t, string(fileBeside(t, path)))
				if got := text(t, v); got != want {
					t.Errorf("\n got %s\nwant %s", got, want)
				}
			}
			again, err := mortise.Marshal(v)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(again, data) {
				t.Errorf("\n got %q\nwant %q", again, data)
			}
			for cut := range data {
				if mortise.Unmarshal(data[:cut], fresh(t, path)) == nil {
					t.Fatalf("the first %d of %d bytes were accepted", cut, len(data))
				}
			}
		})
	}
}

func TestLenient(t *testing.T) {
	t.Parallel()
	for path, data := range vectors(t, "lenient", 10) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			v := fresh(t, path)
			if err := mortise.Unmarshal(data, v); err != nil {
				t.Fatal(err)
			}
			want := fresh(t, path)
			into := any(want)
			whole := wholeEvent{Event: new(mortise.Event)}
			if e, ok := want.(*mortise.Event); ok {
				whole.Event, into = e, &whole
			}
			if err := json.Unmarshal(fileBeside(t, path), into); err != nil {
				t.Fatal(err)
			}
			whole.Event.Messages = mortise.MessagesOf(whole.Messages...)
			if got, want := text(t, v), text(t, want); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		})
	}
}

func TestBad(t *testing.T) {
	t.Parallel()
	for path, data := range vectors(t, "bad", 35) {
		t.Run(filepath.Base(path), func(t *testing.T) {
			t.Parallel()
			var refused *mortise.DecodeError
			if err := mortise.Unmarshal(data, fresh(t, path)); !errors.As(err, &refused) {
				t.Fatalf("error %v, want a DecodeError", err)
			}
			if refused.Offset < 0 || refused.Offset > len(data) || refused.What == "" {
				t.Errorf("%+v names no place in %d bytes or no reason", refused, len(data))
			}
		})
	}
}
