package eval_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/compaction/eval"
)

func TestProbesAreRead(t *testing.T) {
	t.Parallel()
	list, err := eval.ReadProbes(strings.NewReader(`
{"id": "a", "conversation": "c", "question": "Who?", "answers": ["Mira"], "evidence": [3, "m4"]}

{"id": "b", "conversation": "c", "answers": ["x"], "keys": ["y", "z"], "reward": 0.5}
`), "p.jsonl")
	if err != nil || len(list) != 2 {
		t.Fatalf("%d probes, %v", len(list), err)
	}
	if p := list[0]; p.Question != "Who?" || p.Answers[0] != "Mira" || len(p.Evidence) != 2 {
		t.Errorf("first probe %+v", p)
	}
	if p := list[1]; len(p.Keys) != 2 || *p.Reward != 0.5 {
		t.Errorf("second probe %+v", p)
	}
}

func TestBadProbesNameFileAndLine(t *testing.T) {
	t.Parallel()
	good := `{"id":"a","conversation":"c","answers":["x"]}` + "\n"
	for input, says := range map[string]string{
		"":                                     "p.jsonl: there are none",
		"\n \n":                                "p.jsonl: there are none",
		good + "{":                             "p.jsonl: line 2: unexpected EOF",
		good + "\n[1]":                         "p.jsonl: line 3: json: cannot unmarshal array",
		good + good:                            `p.jsonl: line 2: id "a" is that of line 1`,
		`{"conversation":"c","answers":["x"]}`: "p.jsonl: line 1: id is missing",
		`{"id":"a","answers":["x"]}`:           "p.jsonl: line 1: conversation is missing",
		`{"id":"a","conversation":"c"}`:        "p.jsonl: line 1: answers are missing",
		`{"id":"a","conversation":"c","answers":[" "]}`:             "p.jsonl: line 1: an answer or key is empty",
		`{"id":"a","conversation":"c","answers":["x"],"keys":[""]}`: "p.jsonl: line 1: an answer or key is empty",
		`{"id":"a","conversation":"c","answer":["x"]}`:              `p.jsonl: line 1: json: unknown field "answer"`,
		`{"id":"a","conversation":"c","answers":"x"}`:               "p.jsonl: line 1: json: cannot unmarshal string",
		strings.TrimSpace(good) + " {}":                             "p.jsonl: line 1: something follows the object",
		good + `{"id":"` + strings.Repeat("x", 1<<20) + `"}`:        "p.jsonl: line 2: longer than 1048576 bytes",
	} {
		if _, err := eval.ReadProbes(strings.NewReader(input), "p.jsonl"); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%.60q: error %v does not say %q", input, err, says)
		}
	}
	missing := filepath.Join(t.TempDir(), "none.jsonl")
	if _, err := eval.OpenProbes(missing); err == nil || !strings.Contains(err.Error(), "none.jsonl") {
		t.Errorf("a file that is not there: %v", err)
	}
}

func FuzzReadProbes(f *testing.F) {
	f.Add(`{"id":"a","conversation":"c","answers":["x"],"keys":["k"],"evidence":[1,"m"]}`)
	f.Add("{\"id\":\"a\"}\n\n[")
	f.Fuzz(func(t *testing.T, input string) {
		list, err := eval.ReadProbes(strings.NewReader(input), "p")
		if (err == nil) != (len(list) > 0) {
			t.Fatalf("%d probes and error %v", len(list), err)
		}
	})
}
