package anchored

import (
	"errors"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/talk"
)

// Errors of an answer that is of no use.
var (
	ErrEmptyAnswer = errors.New("anchored: the model answered nothing")
	ErrNoSections  = errors.New("anchored: the model's answer has none of the sections")
)

// answer is what a model said, by sections.
type answer struct {
	said  [sections][]string
	last  section
	whole bool // the closing tag is there
	text  string
}

// parse reads an answer.
func parse(text string) (*answer, error) {
	if strings.TrimSpace(text) == "" {
		return nil, ErrEmptyAnswer
	}
	a := &answer{text: text}
	if _, inner, found := strings.Cut(text, "<summary>"); found {
		text = inner
	}
	text, _, a.whole = strings.Cut(text, "</summary>")
	known, at := false, false
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		if strings.HasPrefix(line, "#") {
			if s, ok := named(line); ok {
				a.last, known, at = s, true, true
				continue
			}
		}
		if at && strings.TrimSpace(line) != "" {
			a.said[a.last] = append(a.said[a.last], line)
		}
	}
	if !known {
		return nil, &uselessError{says: talk.Line(a.text, 80)}
	}
	a.text = strings.ToLower(text)
	return a, nil
}

// uselessError shows how an answer begins.
type uselessError struct{ says string }

func (e *uselessError) Error() string {
	return ErrNoSections.Error() + "; it begins " + strconv.Quote(e.says)
}

func (e *uselessError) Unwrap() error { return ErrNoSections }

// merge puts an answer over the memory. A section that the answer does not have, has empty, or
// leaves unchanged stays.
func (o *outline) merge(a *answer) {
	for s := range sections {
		said := a.said[s]
		switch word := only(said); {
		case len(said) == 0 || word == "unchanged":
		case word == "none":
			if s == open || s == next {
				o.lines[s] = nil
			}
		default:
			o.lines[s] = append(said, o.lost(s, a)...)
		}
	}
}

// only is the single word of a section like "(none)".
func only(lines []string) string {
	if len(lines) != 1 {
		return ""
	}
	return strings.ToLower(strings.Trim(lines[0], "-*. ()"))
}

// lost returns the lines of a section that the answer has nowhere. They are restored where
// nothing may get lost: constraints and files, and a section within which the answer ends.
func (o *outline) lost(s section, a *answer) []string {
	if s != constraints && s != files && (a.whole || s != a.last) {
		return nil
	}
	var out []string
	for _, line := range o.lines[s] {
		if !survives(line, a.text) {
			out = append(out, line)
		}
	}
	return out
}

// survives reports whether at least two thirds of the words of a line are in a text, which is in
// lower case.
func survives(line, text string) bool {
	total, found := 0, 0
	for w := range strings.FieldsSeq(strings.ToLower(line)) {
		w = strings.Trim(w, ".,;:!?()[]{}\"'`*-")
		if len(w) < 4 && !strings.ContainsAny(w, "0123456789") {
			continue
		}
		total++
		if strings.Contains(text, w) {
			found++
		}
	}
	if total == 0 {
		return strings.Contains(text, strings.ToLower(strings.TrimSpace(line)))
	}
	return 3*found >= 2*total
}
