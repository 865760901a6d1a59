package repair_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/examples/plugins/jsonfix/repair"
)

func TestObject(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a": 1}`:                                      `{"a":1}`,
		"```json\n{\"a\": 1}\n```":                      `{"a":1}`,
		`{"a": [1, 2,], }`:                              `{"a":[1,2]}`,
		`{'a': 'it\'s'}`:                                `{"a":"it's"}`,
		`{a: True, b: None, c: False}`:                  `{"a":true,"b":null,"c":false}`,
		"{\"a\": \"two\nlines\"}":                       `{"a":"two\nlines"}`,
		`{"a": 1 /* one */, // more` + "\n" + `"b": 2}`: `{"a":1,"b":2}`,
		`{"re": "\d+\.go"}`:                             `{"re":"\\d+\\.go"}`,
		`{"a": "\u00e9\ud83d\ude00"}`:                   `{"a":"é😀"}`,
		`{"a": 1.5e3, "b": -2}`:                         `{"a":1500,"b":-2}`,
		`{}`:                                            `{}`,
	} {
		got, cut, err := repair.Object(text)
		out, _ := json.Marshal(got)
		if err != nil || cut || string(out) != want {
			t.Errorf("%s: %s, cut %v, error %v", text, out, cut, err)
		}
	}
}

func TestCutOff(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"path": "main.go", "text": "packa`: `{"path":"main.go","text":"packa"}`,
		`{"a": {"b": [1, 2`:                  `{"a":{"b":[1,2]}}`,
		`{"a": 1, "b`:                        `{"a":1}`,
		`{"a": 1, "b":`:                      `{"a":1}`,
		`{`:                                  `{}`,
	} {
		got, cut, err := repair.Object(text)
		out, _ := json.Marshal(got)
		if err != nil || !cut || string(out) != want {
			t.Errorf("%s: %s, cut %v, error %v", text, out, cut, err)
		}
	}
}

// TestRefuses: what is not clear is not guessed.
func TestRefuses(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "rm -rf /", `"a"`, `[1]`, `{"a": 1} {"b": 2}`, `{"a": 1, "a": 2}`, `{"a" 1}`, `{"a": 1 "b": 2}`, `{"a": NaN}`, `{"a": 0x10}`,
		`{"a": "\ud800x"}`, `{"a": "\uzzzz"}`, `{1 2}`, strings.Repeat(`{"a":`, 100), `{"a": ` + strings.Repeat("9", 1<<20) + `}`,
	} {
		if got, _, err := repair.Object(text); err == nil {
			t.Errorf("%.60q: %v", text, got)
		}
	}
}

// FuzzObject: what is JSON is read as it is, and the rest never panics.
func FuzzObject(f *testing.F) {
	f.Add(`{"a": [1, "x", null, {"b": 2.5}]}`)
	f.Add(`{'a': True,}`)
	f.Fuzz(func(t *testing.T, text string) {
		got, _, err := repair.Object(text)
		var want map[string]any
		if strings.Contains(text, `\u`) || json.Unmarshal([]byte(text), &want) != nil || want == nil {
			return
		}
		out, _ := json.Marshal(got)
		again, _ := json.Marshal(want)
		var a, b any
		_ = json.Unmarshal(out, &a)
		_ = json.Unmarshal(again, &b)
		if err == nil && fmt.Sprint(a) != fmt.Sprint(b) {
			t.Errorf("%q: %s, want %s", text, out, again)
		}
	})
}
