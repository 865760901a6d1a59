package anchored

import (
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/talk"
)

// section is a heading of the summary.
type section uint8

// Sections in their order.
const (
	goal section = iota
	constraints
	progress
	decisions
	faults
	files
	open
	next
	sections
)

func (s section) heading() string {
	return [sections]string{"Goal", "Constraints", "Progress", "Decisions", "Errors", "Files", "Open items", "Next"}[s]
}

// named finds the section of a heading, also of another summarizer's.
func named(heading string) (section, bool) {
	h := strings.ToLower(heading)
	for _, w := range []struct {
		word string
		s    section
	}{
		{"goal", goal},
		{"constraint", constraints},
		{"instruction", constraints},
		{"preference", constraints},
		{"decision", decisions},
		{"error", faults},
		{"file", files},
		{"command", files},
		{"open", open},
		{"next", next},
		{"progress", progress},
		{"done", progress},
	} {
		if strings.Contains(h, w.word) {
			return w.s, true
		}
	}
	return progress, false
}

// outline is a summary: the lines of each section.
type outline struct {
	lines   [sections][]string
	leftOut int
}

const (
	leftOutPrefix = "(left out for space: "
	taskPrefix    = "- still running: "
)

// read parses a summary. Lines before the first heading, and those under unknown headings, are
// progress.
func read(text string) outline {
	var o outline
	at := progress
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimRight(line, " \t\r")
		trimmed := strings.TrimSpace(line)
		switch {
		case trimmed == "":
		case strings.HasPrefix(line, "#"):
			at, _ = named(line)
		case strings.HasPrefix(trimmed, leftOutPrefix):
			n, _, _ := strings.Cut(trimmed[len(leftOutPrefix):], " ")
			if count, err := strconv.Atoi(n); err == nil && count > 0 && count < 1e9 {
				o.leftOut += count
			}
		case strings.HasPrefix(trimmed, taskPrefix):
			// The host says anew what is running.
		default:
			o.lines[at] = append(o.lines[at], line)
		}
	}
	return o
}

func (o *outline) text() string {
	var out []byte
	for s := range sections {
		if len(o.lines[s]) == 0 {
			continue
		}
		if len(out) > 0 {
			out = append(out, '\n')
		}
		out = append(append(append(out, "## "...), s.heading()...), '\n')
		for _, l := range o.lines[s] {
			out = append(append(out, l...), '\n')
		}
	}
	if o.leftOut > 0 {
		out = append(out, leftOutPrefix+strconv.Itoa(o.leftOut)+" lines)\n"...)
	}
	return strings.TrimRight(string(out), "\n")
}

func (o *outline) empty() bool {
	for _, lines := range o.lines {
		if len(lines) > 0 {
			return false
		}
	}
	return true
}

// maxLine bounds a line when there is no room, in bytes.
const maxLine = 400

// fit leaves lines out, the oldest of the least important sections first, until the text has
// at most limit bytes.
func (o *outline) fit(limit int) {
	size := len(o.text())
	if size > limit && o.leftOut == 0 {
		size += len("\n" + leftOutPrefix + "99999 lines)")
	}
	for _, step := range []struct {
		s    section
		keep int
	}{
		{progress, 6},
		{files, 20},
		{faults, 6},
		{decisions, 6},
		{progress, 3},
		{files, 8},
		{open, 4},
		{faults, 3},
		{decisions, 3},
		{constraints, 8},
		{next, 3},
		{progress, 1},
		{files, 3},
		{open, 2},
	} {
		for size > limit && len(o.lines[step.s]) > step.keep {
			size -= len(o.lines[step.s][0]) + 1
			o.lines[step.s] = o.lines[step.s][1:]
			o.leftOut++
		}
	}
	for most := maxLine; len(o.text()) > limit && most > 20; most /= 2 {
		for s := range sections {
			for i, l := range o.lines[s] {
				o.lines[s][i] = talk.Shorten(l, most)
			}
		}
	}
}
