package main_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	abigen "github.com/mortise-dev/mortise/internal/abigen"
)

func TestGeneratedFilesAreUpToDate(t *testing.T) {
	t.Parallel()
	if err := abigen.Run([]string{"-check"}, io.Discard, io.Discard); err != nil {
		t.Error(err)
	}
}

// contract lays out a repository with the given abi package.
func contract(t *testing.T, source string) string {
	t.Helper()
	root := t.TempDir()
	for _, folder := range []string{"abi", "sdk/go"} {
		if err := os.MkdirAll(filepath.Join(root, folder), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "abi", "version.go"), []byte("package abi\n"+source), 0o600); err != nil {
		t.Fatal(err)
	}
	return root
}

func TestWriteThenCheck(t *testing.T) {
	t.Parallel()
	root := contract(t, `
// Kind is a kind.
type Kind string

// Point is a point.
type Point struct {
	X int `+"`json:\"x\"`"+`
	// Label is optional.
	Label *string `+"`json:\"label,omitempty\"`"+`
	Kind Kind `+"`json:\"kind,omitempty\"`"+`
	Near []Point `+"`json:\"near\"`"+`
}
`)
	var out strings.Builder
	if err := abigen.Run([]string{"-check", "-root", root}, &out, io.Discard); err == nil || !strings.Contains(err.Error(), "codec_gen.go") {
		t.Errorf("error %v, want one that names the missing files", err)
	}
	if err := abigen.Run([]string{"-root", root}, &out, io.Discard); err != nil {
		t.Fatal(err)
	}
	if err := abigen.Run([]string{"-check", "-root", root}, &out, io.Discard); err != nil {
		t.Error(err)
	}
	types := read(t, root, "abi_gen.go")
	for _, want := range []string{"DO NOT EDIT", "package mortise\n", "// Label is optional.", "type Kind string"} {
		if !strings.Contains(types, want) {
			t.Errorf("%q is not in the types:\n%s", want, types)
		}
	}
	codec := read(t, root, "codec_gen.go")
	for _, want := range []string{`e.raw("\xa1x")`, "if v.Label != nil {", `case "label":`, "func (d *Decoder) pointList() []Point {"} {
		if !strings.Contains(codec, want) {
			t.Errorf("%q is not in the codec:\n%s", want, codec)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "sdk", "go", "abi_gen.go"), []byte("package mortise\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	err := abigen.Run([]string{"-check", "-root", root}, &out, io.Discard)
	if err == nil || !strings.Contains(err.Error(), "go run ./internal/abigen") {
		t.Errorf("error %v, want one that names the hint", err)
	}
}

// TestLazyList: the list that the SDK reads lazily gets another type, and its element
// a method for each field.
func TestLazyList(t *testing.T) {
	t.Parallel()
	root := contract(t, `
// Event is an event.
type Event struct {
	// Messages are lazy.
	Messages []Message `+"`json:\"messages,omitempty\"`"+`
	More []Message `+"`json:\"more\"`"+`
}

// Message is a message.
type Message struct {
	ID string `+"`json:\"id\"`"+`
	Next *Message `+"`json:\"next\"`"+`
	Size *int64 `+"`json:\"size\"`"+`
}
`)
	if err := abigen.Run([]string{"-root", root}, io.Discard, io.Discard); err != nil {
		t.Fatal(err)
	}
	types := read(t, root, "abi_gen.go")
	for _, want := range []string{"\tMessages Messages  `json", "\tMore     []Message `json", "// Messages are lazy."} {
		if !strings.Contains(types, want) {
			t.Errorf("%q is not in the types:\n%s", want, types)
		}
	}
	codec := read(t, root, "codec_gen.go")
	for _, want := range []string{
		"v.Messages = d.messages(messageIndex)", "case FieldMessageIndex:\n\t\t\tmessageIndex = d.messageIndex()", "v.Messages.marshalTo(e)", "v.Messages = d.unsentMessages(messageIndex)", "v.More = d.messageList()",
		`return string(v.str("id"))`, "func (v MessageView) Next() *Message {", "func (v MessageView) Size() *int64 {",
	} {
		if !strings.Contains(codec, want) {
			t.Errorf("%q is not in the codec:\n%s", want, codec)
		}
	}
	if strings.Contains(codec, "EventView") {
		t.Error("a type that is no element of a lazy list has a view")
	}
}

func read(t *testing.T, root, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(root, "sdk", "go", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestRefuses lists what the generator cannot write, so that a change of the
// contract fails here and not in a guest.
func TestRefuses(t *testing.T) {
	t.Parallel()
	tag := func(text string) string { return "`json:\"" + text + "\"`" }
	for name, source := range map[string]string{
		"syntax":             "type {",
		"import":             `import "time"`,
		"no tag":             "type T struct { A int }",
		"no name":            "type T struct { A int " + tag(",omitempty") + " }",
		"unknown option":     "type T struct { A int " + tag("a,string") + " }",
		"long name":          "type T struct { A int " + tag(strings.Repeat("a", 32)) + " }",
		"embedded":           "type U struct{}\ntype T struct { U " + tag("u") + " }",
		"unsupported number": "type T struct { A uint8 " + tag("a") + " }",
		"unknown type":       "type T struct { A Missing " + tag("a") + " }",
		"map of ints":        "type T struct { A map[string]int " + tag("a") + " }",
		"list of lists":      "type T struct { A [][]string " + tag("a") + " }",
		"list of fractions":  "type T struct { A []float64 " + tag("a") + " }",
		"array":              "type T struct { A [2]string " + tag("a") + " }",
		"function":           "type T struct { A func() " + tag("a") + " }",
		"struct omitempty":   "type U struct{}\ntype T struct { A U " + tag("a,omitempty") + " }",
		"named number":       "type T int",
		"interface":          "type T interface{}",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := contract(t, source)
			err := abigen.Run([]string{"-root", root}, io.Discard, io.Discard)
			if err == nil || !strings.HasPrefix(err.Error(), "abigen: ") {
				t.Errorf("error %v, want one of abigen's", err)
			}
			if _, err := os.Stat(filepath.Join(root, "sdk", "go", "codec_gen.go")); err == nil {
				t.Error("a file was written")
			}
		})
	}
}

func TestArguments(t *testing.T) {
	t.Parallel()
	if err := abigen.Run([]string{"-unknown"}, io.Discard, io.Discard); err == nil {
		t.Error("an unknown flag was accepted")
	}
	if err := abigen.Run([]string{"-root", t.TempDir()}, io.Discard, io.Discard); err == nil {
		t.Error("a folder without an abi package was accepted")
	}
}
