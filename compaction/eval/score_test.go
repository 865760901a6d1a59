package eval_test

import (
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/compaction/eval"
)

func TestScores(t *testing.T) {
	t.Parallel()
	far := strings.Repeat("- ", 120)
	wand := eval.Probe{Question: "Which part of my espresso machine arrived bent?", Answers: []string{"steam wand"}}
	flight := eval.Probe{Answers: []string{"HAT028"}}
	keys := eval.Probe{Question: "How many bags?", Answers: []string{"two bags on HAT028"}, Keys: []string{"HAT028", "two"}}
	for name, c := range map[string]struct {
		probe eval.Probe
		text  string
		want  eval.Score
	}{
		"lost":                                    {wand, "The espresso machine is broken.", eval.Score{}},
		"grounded by the question":                {wand, "Espresso machine: bent STEAM WAND.", eval.Score{Literal: 1, Grounded: 1}},
		"a word that begins with a content word":  {wand, "machinery: steam wand", eval.Score{Literal: 1, Grounded: 1}},
		"a word that only ends with one":          {wand, "xmachine: steam wand", eval.Score{Literal: 1}},
		"literal alone":                           {wand, "steam wand", eval.Score{Literal: 1}},
		"another line":                            {wand, "espresso machine\nsteam wand", eval.Score{Literal: 1}},
		"another item":                            {wand, "espresso machine; steam wand", eval.Score{Literal: 1}},
		"another sentence":                        {wand, "Espresso machine. Steam wand.", eval.Score{Literal: 1}},
		"too far":                                 {wand, "espresso " + far + "steam wand", eval.Score{Literal: 1}},
		"a later place is grounded":               {wand, "steam wand " + far + far + "steam wand of the espresso machine", eval.Score{Literal: 1, Grounded: 1}},
		"part of a word is nothing":               {wand, "steam wands of the espresso machine", eval.Score{}},
		"grounded by its sentence":                {flight, "HAT028 leaves in May", eval.Score{Literal: 1, Grounded: 1}},
		"a bag of identifiers":                    {flight, "HAT028 4WQ150 2024-05-30 src/main.go leaves/with", eval.Score{Literal: 1}},
		"another sentence's words do not count":   {flight, "HAT028 espresso machine steam", eval.Score{Literal: 1}},
		"keys count by themselves":                {keys, "HAT028 takes no bags", eval.Score{Literal: 0.5, Grounded: 0.5}},
		"keys all":                                {keys, "two bags on HAT028", eval.Score{Literal: 1, Grounded: 1}},
		"any answer is enough":                    {eval.Probe{Answers: []string{"4WQ150", "HAT028"}}, "HAT028", eval.Score{Literal: 1}},
		"an answer that nobody stated is no loss": {eval.Probe{Answers: []string{"HAT028", "never said"}}, "HAT028 leaves", eval.Score{Literal: 1, Grounded: 1}},
		"other scripts":                           {eval.Probe{Question: "Which city counts?", Answers: []string{"Köln"}}, "KÖLN counts", eval.Score{Literal: 1, Grounded: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, ok := eval.Grade(c.probe, home(), c.text)
			if !ok || got != c.want {
				t.Errorf("score %+v (%v), want %+v", got, ok, c.want)
			}
		})
	}
	if _, ok := eval.Grade(eval.Probe{Answers: []string{"never said"}}, home(), "never said"); ok {
		t.Error("a fact that the conversation does not state is scored")
	}
}

// home is the conversation of TestScores.
func home() eval.Conversation {
	return talk("c", "The espresso machine came with a bent steam wand.", "Flight HAT028 leaves on 2024-05-30 with two bags.",
		`{"reservation": "4WQ150", "insurance": "no"}`, "The path is src/main.go, and Köln counts 17.")
}

func FuzzGrade(f *testing.F) {
	f.Add("a needle in a haystack", "needle", "İstanbul needle hay")
	f.Add("x", "x", strings.Repeat("x ", 5000))
	f.Add("0", " ", "0")
	f.Add("0\xff 0", "0", "\xff0")
	f.Fuzz(func(t *testing.T, conversation, answer, text string) {
		s, ok := eval.Grade(eval.Probe{Answers: []string{answer}}, talk("c", conversation), text)
		if s.Grounded > s.Literal || s.Literal < 0 || s.Literal > 1 || !ok && s != (eval.Score{}) {
			t.Fatalf("score %+v, %v", s, ok)
		}
	})
}
