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

// text returns v as compact JSON.
func text(t *testing.T, v any) string {
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
				var want bytes.Buffer
				if err := json.Compact(&want, fileBeside(t, path)); err != nil {
					t.Fatal(err)
				}
				if got := text(t, v); got != want.String() {
					t.Errorf("\n got %s\nwant %s", got, want.String())
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
			if err := json.Unmarshal(fileBeside(t, path), want); err != nil {
				t.Fatal(err)
			}
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
