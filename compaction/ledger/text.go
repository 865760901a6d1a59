package ledger

import (
	"strings"
	"unicode/utf8"
)

// cut returns at most n bytes of s, whole characters. The result shares memory with s.
func cut(s string, n int) string {
	if len(s) <= n {
		return s
	}
	whole := n
	for whole > 0 && n-whole < utf8.UTFMax && !utf8.RuneStart(s[whole]) {
		whole--
	}
	if !utf8.RuneStart(s[whole]) { // no text at all
		whole = n
	}
	return s[:whole]
}

// clip is cut with memory of its own, so that a long text can be released.
func clip(s string, n int) string { return strings.Clone(cut(s, n)) }

// sizeOf is the whole size of a text if n bytes of it are less, else 0.
func sizeOf(s string, n int) int {
	if len(s) > n {
		return len(s)
	}
	return 0
}

// firstLine is the first line that is not blank.
func firstLine(s string) string {
	s = strings.TrimLeft(s, " \t\r\n")
	if i := strings.IndexByte(s, '\n'); i >= 0 {
		s = s[:i]
	}
	return strings.TrimRight(s, " \t\r")
}

// maxSentences bounds how much of one text is cut into sentences, in bytes.
const maxSentences = 64 << 10

// sentences calls f with each sentence of a text: a part of a line that ends with a full stop,
// question or exclamation mark before a space, or the rest of the line. Code between fences is
// left out.
func sentences(text string, f func(s string)) {
	text = cut(text, maxSentences)
	fenced := false
	for at := 0; at < len(text); {
		line, next := lineAt(text, at)
		at = next
		line = strings.TrimSpace(line)
		if strings.HasPrefix(line, "```") || strings.HasPrefix(line, "~~~") {
			fenced = !fenced
			continue
		}
		if fenced || line == "" {
			continue
		}
		line = strings.TrimLeft(line, "-*>#| \t")
		for line != "" {
			n := sentenceEnd(line)
			if s := strings.TrimSpace(line[:n]); len(s) > 2 {
				f(s)
			}
			line = strings.TrimLeft(line[n:], " ")
		}
	}
}

// sentenceEnd is where the first sentence of a line ends.
func sentenceEnd(line string) int {
	for i := range len(line) {
		switch line[i] {
		case '.', '?', '!':
			end := i + 1
			for end < len(line) && strings.IndexByte("\"')*`", line[end]) >= 0 {
				end++
			}
			if end == len(line) {
				return end
			}
			if line[end] == ' ' && i >= 8 && !abbreviation(line[:i]) {
				return end
			}
		case 0xe3: // the full stop of Chinese and Japanese
			if strings.HasPrefix(line[i:], "。") {
				return i + len("。")
			}
		}
	}
	return len(line)
}

func abbreviation(s string) bool {
	switch s[strings.LastIndexAny(s, " (\t")+1:] {
	case "e.g", "i.e", "vs", "etc", "Mr", "Mrs", "Ms", "Dr", "Prof", "Hon", "St", "No", "approx", "a.m", "p.m", "U.S", "z.B", "bzw", "ca":
		return true
	}
	return false
}

// hasCue reports a word of the list in a text of lower case, as a word of its own.
func hasCue(low string, cues []string) bool {
	for _, c := range cues {
		for at := 0; ; {
			i := strings.Index(low[at:], c)
			if i < 0 {
				break
			}
			i += at
			end := i + len(c)
			if c[0] >= cjk || (i == 0 || !letter(low[i-1])) && (end == len(low) || !letter(low[end])) {
				return true
			}
			at = end
		}
	}
	return false
}

// cjk is the first byte of scripts without blanks between words, or a greater one.
const cjk = 0xe3

func letter(b byte) bool { return b >= 'a' && b <= 'z' || b >= 'A' && b <= 'Z' || b >= 0x80 }
