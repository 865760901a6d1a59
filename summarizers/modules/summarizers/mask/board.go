package mask

import (
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/summarizers/modules/summarizers/talk"
)

// Speakers of an entry.
const (
	byUser      = "user"
	byAssistant = "assistant"
	byTool      = "tool"
	byEarlier   = "earlier"
)

const (
	maskedPrefix  = "Masked: "
	leftOutPrefix = "(left out for space: "
	indent        = "\n  "
)

// entry is one thing that was said or done.
type entry struct {
	by, id, text string
	gone         bool
	whole        string // the text before it was shortened
}

func (e *entry) cost() int {
	if e.gone {
		return 0
	}
	return len(e.by) + len(e.id) + len(e.text) + len("[ ] \n")
}

// board is the summary in the making.
type board struct {
	list   []entry
	masked int
	bytes  int
	// notable is how much of a masked output stands in its line, in bytes.
	notable int
}

// cost is what the entries take.
func (b *board) cost() int {
	total := 0
	for i := range b.list {
		total += b.list[i].cost()
	}
	return total
}

// add takes a text; its further lines are indented, so that none can look like an entry.
func (b *board) add(by, text string) {
	if strings.Contains(text, "\n") {
		lines := strings.Split(text, "\n")
		for i := range lines {
			lines[i] = strings.TrimRight(lines[i], " \t\r")
		}
		text = strings.Join(lines, indent)
	}
	b.list = append(b.list, entry{by: by, text: text})
}

// fit shortens entries and leaves some out, the oldest first, until they take at most room
// bytes. What room is left then goes to the newest of them.
func (b *board) fit(room int) {
	for i := range b.list {
		b.list[i].whole = b.list[i].text
	}
	b.refill(room - b.shrink(b.cost(), room))
}

// leastShown is the least of an entry that is worth a place, in bytes.
const leastShown = 100

// refill makes entries whole again, or longer, as so many bytes allow.
func (b *board) refill(room int) {
	for _, by := range []string{byUser, byTool, byAssistant, byEarlier} {
		for i := len(b.list) - 1; i >= 0; i-- {
			e := &b.list[i]
			if e.by != by {
				continue
			}
			more := entry{by: e.by, id: e.id, text: e.whole}
			if over := more.cost() - e.cost() - room; over > 0 && len(e.whole)-over >= leastShown {
				more.text = talk.Shorten(e.whole, len(e.whole)-over)
			}
			if gain := more.cost() - e.cost(); gain > 0 && gain <= room {
				room -= gain
				e.text, e.gone = more.text, false
			}
		}
	}
}

// shrink is fit without what is given back. It returns what the entries take.
func (b *board) shrink(total, room int) int {
	// What a kind of entry may still take: 0 leaves it out.
	for _, step := range []struct {
		by  string
		max int
	}{
		{byTool, 200},
		{byAssistant, 1200},
		{byTool, 100},
		{byAssistant, 500},
		{byEarlier, 1200},
		{byUser, 1500},
		{byAssistant, 240},
		{byTool, 0},
		{byUser, 600},
		{byEarlier, 500},
		{byAssistant, 100},
		{byUser, 240},
		{byAssistant, 0},
		{byEarlier, 0},
		{byUser, 100},
		{byUser, 0},
	} {
		for i := 0; i < len(b.list) && total > room; i++ {
			e := &b.list[i]
			if e.by != step.by || e.gone {
				continue
			}
			before := e.cost()
			if e.gone = step.max == 0; !e.gone {
				e.text = talk.Shorten(e.text, step.max)
			}
			total += e.cost() - before
		}
	}
	return total
}

// text writes the entries. leftOut is what earlier summaries have left out.
func (b *board) text(leftOut int) string {
	var out []byte
	for i := range b.list {
		e := &b.list[i]
		if e.gone {
			leftOut++
			continue
		}
		out = append(append(out, '['), e.by...)
		if e.id != "" {
			out = append(append(out, ' '), e.id...)
		}
		out = append(append(append(out, "] "...), e.text...), '\n')
	}
	if leftOut > 0 {
		out = append(out, leftOutPrefix+strconv.Itoa(leftOut)+" entries)\n"...)
	}
	return strings.TrimRight(string(out), "\n")
}

// earlier reads a summary back, and returns how many entries it had left out. Text that is
// not of this package's making becomes entries of the speaker "earlier".
func (b *board) earlier(text string) (leftOut int) {
	for line := range strings.SplitSeq(strings.TrimSpace(text), "\n") {
		by, id, rest := speaker(line)
		switch {
		case by != "":
			b.list = append(b.list, entry{by: by, id: id, text: rest})
		case strings.HasPrefix(line, leftOutPrefix):
			n, _, _ := strings.Cut(line[len(leftOutPrefix):], " ")
			count, err := strconv.Atoi(n)
			if err == nil && count > 0 && count < 1e9 {
				leftOut += count
			}
		case strings.HasPrefix(line, maskedPrefix), strings.HasPrefix(line, "Files modified: "),
			strings.HasPrefix(line, "Files read: "), strings.HasPrefix(line, "Running tasks: "):
			// The host adds that anew.
		case strings.HasPrefix(line, "  ") && len(b.list) > 0:
			b.list[len(b.list)-1].text += "\n" + line
		case strings.TrimSpace(line) != "":
			b.list = append(b.list, entry{by: byEarlier, text: strings.TrimSpace(line)})
		}
	}
	return leftOut
}

// speaker reads "[user] text" or "[tool m7] text".
func speaker(line string) (by, id, rest string) {
	if !strings.HasPrefix(line, "[") {
		return "", "", ""
	}
	head, rest, found := strings.Cut(line[1:], "] ")
	by, id, _ = strings.Cut(head, " ")
	switch by {
	case byUser, byAssistant, byEarlier:
		if found && id == "" {
			return by, "", rest
		}
	case byTool:
		if found && !strings.ContainsAny(id, "[]") {
			return by, id, rest
		}
	}
	return "", "", ""
}
