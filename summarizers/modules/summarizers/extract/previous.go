package extract

import "strings"

const (
	leftOutPrefix = "(left out for space: "
	// ageFactor is above 1: what was worth keeping once, out of more than is seen
	// now, is likely to be worth it again.
	ageFactor = 1.2
)

// previous reads a summary back into units. Text that is not of this package's
// making gives units as well. It returns how many pieces that summary says it
// left out.
func (c *collector) previous(text string) (leftOut int) {
	sec, by := secPassages, byEarlier
	c.msg = -1
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		switch {
		case line == "":
		case strings.HasPrefix(line, "#"):
			sec = sectionNamed(line)
		case strings.HasPrefix(line, leftOutPrefix):
			leftOut += leadingInt(line[len(leftOutPrefix):])
		default:
			line = strings.TrimPrefix(strings.TrimPrefix(line, "- "), "* ")
			by, line = splitSpeaker(line, by)
			c.earlier(sec, by, line)
		}
	}
	return leftOut
}

func (c *collector) earlier(sec section, by, line string) {
	if sec == secIdents {
		c.earlierValues(line)
		return
	}
	if sec == secRead || sec == secModified {
		for f := range strings.SplitSeq(line, ", ") {
			c.files[f] |= uint8(sec-secRead) + 1
			c.oldUnit(sec, byAssistant, f)
		}
		return
	}
	for part := range strings.SplitSeq(line, separator) {
		sentences(part, func(s string) {
			clauses(s, func(s string) { c.oldUnit(sec, by, s) })
			if sec != secNotes {
				n := len(c.units)
				notes(s, func(s string) { c.oldUnit(secNotes, by, s) })
				c.derive(n)
			}
		})
	}
}

func (c *collector) earlierValues(line string) {
	key, values, ok := strings.Cut(line, ": ")
	if !ok {
		c.oldUnit(secIdents, byAssistant, line)
		return
	}
	for v := range strings.SplitSeq(values, ", ") {
		c.oldUnit(secIdents, byAssistant, key+": "+v)
	}
}

func (c *collector) oldUnit(sec section, by, text string) {
	role, factor := float32(weightAssistant), float32(ageFactor)
	switch by {
	case byUser:
		role = weightUser
	case byTool:
		role, factor = weightTool, 0.5*ageFactor
	}
	if sec == secGoal {
		factor *= 1.5
	}
	n := len(c.units)
	c.unit(by, sec, text, factor*statement(by, text), role)
	if len(c.units) > n {
		c.units[n].old = true
	}
}

// sectionNamed finds the section of a heading, also of another summarizer's.
func sectionNamed(line string) section {
	for s := secGoal; s < sectionCount; s++ {
		if line == s.heading() {
			return s
		}
	}
	l := lower(line)
	for _, p := range []struct {
		word string
		sec  section
	}{
		{"goal", secGoal},
		{"constraint", secConstraints},
		{"preference", secConstraints},
		{"instruction", secConstraints},
		{"in progress", secInProgress},
		{"blocked", secBlocked},
		{"done", secDone},
		{"progress", secDone},
		{"decision", secDecisions},
		{"error", secErrors},
		{"modified", secModified},
		{"files", secRead},
		{"command", secCommands},
		{"next", secOpen},
		{"open", secOpen},
	} {
		if strings.Contains(l, p.word) {
			return p.sec
		}
	}
	return secPassages
}

func splitSpeaker(line, by string) (string, string) {
	for _, s := range []string{byUser, byAssistant, byTool} {
		if rest, ok := strings.CutPrefix(line, "["+s+"] "); ok {
			return s, rest
		}
	}
	return by, line
}

func leadingInt(s string) int {
	n := 0
	for i := 0; i < len(s) && s[i] >= '0' && s[i] <= '9' && n < 1e9; i++ {
		n = n*10 + int(s[i]-'0')
	}
	return n
}
