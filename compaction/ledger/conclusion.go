package ledger

import "strings"

// concluded is what a request came to, in the words of the agent's latest text: of work its conclusion, of talk its first sentence.
func (l *Ledger) concluded(text string) (came string, size int) {
	if len(l.s.Work.Files)+len(l.s.Work.Commands) > 0 {
		return l.conclusion(text, maxOutcome), 0
	}
	line := firstLine(text)
	line = line[:saying(line)]
	return clip(line, maxOutcome), sizeOf(line, maxOutcome)
}

// saying is where the first sentence of a line ends, or the one behind it where that is "Done.", which does not say much.
func saying(line string) int {
	end := sentenceEnd(line)
	if end < shortLine && end < len(line) {
		end += sentenceEnd(line[end:])
	}
	return end
}

// conclusion is what the last text of a turn says was done or found: its first sentences and items in at most n bytes, each on a
// line of its own, without headings, tables, code, announcements and questions. It is the first line where nothing else
// is left, and empty where that is only "Perfect!".
func (l *Ledger) conclusion(text string, n int) string {
	var out []string
	used := 0
	proseLines(text, func(line string) bool {
		for line = itemText(line); line != ""; {
			end := saying(line)
			s := strings.TrimSpace(line[:end])
			line = strings.TrimLeft(line[end:], " ")
			if l.concludes(s) && (len(out) == 0 || len(s) >= shortLine && used+len(s) <= n) {
				out = append(out, cut(s, n))
				used += len(s) + 1
			}
		}
		return used < n
	})
	if len(out) > 0 {
		return strings.Join(out, "\n")
	}
	first := firstLine(text)
	if len(first) < shortLine && startsWith(strings.ToLower(first), l.cues.filler) {
		return ""
	}
	return clip(first, n)
}

// proseLines calls f with the lines of a text that are no headings, tables, links or code, until it returns false.
func proseLines(text string, f func(line string) bool) {
	fenced := false
	for at := 0; at < len(text); {
		line, next := lineAt(text, at)
		at = next
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~"):
			fenced = !fenced
		case fenced || line == "" || strings.IndexByte("#|<-=[", line[0]) >= 0 && !strings.HasPrefix(line, "- "):
		case !f(line):
			return
		}
	}
}

// itemText is a line without the mark or number of a list.
func itemText(line string) string {
	line = strings.TrimLeft(line, "-> \t")
	if strings.HasPrefix(line, "* ") {
		line = strings.TrimLeft(line[1:], " ")
	}
	if i := digits(line, 0); i > 0 && i < 3 && i+1 < len(line) && (line[i] == '.' || line[i] == ')') && line[i+1] == ' ' {
		line = strings.TrimLeft(line[i+1:], " ")
	}
	return line
}

// concludes reports a sentence that says more than that something follows.
func (l *Ledger) concludes(s string) bool {
	if len(s) < 6 || strings.HasSuffix(s, ":") || strings.HasSuffix(s, ":**") || strings.HasSuffix(s, "?") || strings.HasPrefix(s, "**") && strings.HasSuffix(s, "**") {
		return false
	}
	low := strings.ToLower(s)
	if !startsWith(low, l.cues.filler) {
		return true
	}
	i := strings.IndexAny(low, "!.") // "Perfect! Both files are up to date."
	if i < 0 || i+1+shortLine > len(low) || low[i+1] != ' ' {
		return false
	}
	return !startsWith(strings.TrimSpace(low[i+1:]), l.cues.filler)
}
