package future

import (
	"regexp"
	"strings"
	"unicode"

	"github.com/mortise-dev/mortise/abi"
)

// minQuote is how many characters a quotation has at least that is checked:
// single words in quotation marks are names.
const minQuote = 12

// spoken is what the user said, word by word: messages, commands with their
// arguments, and reasons and answers that stand in results.
func spoken(messages []abi.Message) string {
	var b strings.Builder
	for i := range messages {
		m := &messages[i]
		text := m.Text()
		if m.Role == abi.RoleUser {
			b.WriteString(" " + plain(text))
			if name, ok := between(text, "<command-name>", "</command-name>"); ok {
				b.WriteString(" " + plain(name+" "+request(m)))
			}
		}
		if low := strings.ToLower(headOf(text, 400)); m.Role == abi.RoleTool && (strings.Contains(low, "user said") || strings.Contains(low, "user has answered") ||
			strings.Contains(low, "user doesn't want") || strings.Contains(low, "user provided")) {
			b.WriteString(" " + plain(text))
		}
	}
	return b.String()
}

func between(s, from, to string) (string, bool) {
	_, s, ok := strings.Cut(s, from)
	s, _, closed := strings.Cut(s, to)
	return s, ok && closed
}

// quotePattern finds what stands in quotation marks.
func quotePattern() *regexp.Regexp { return regexp.MustCompile(`“([^”]+)”|"([^"\n]+)"`) }

// claimedWords checks what a text gives as words of the user. A quotation is the
// user's when the closest mention of a speaker before it on its line is the user,
// or when there is none and its section is about requests or the user. It returns
// the quotations that the user did not say, and how many were checked. A quotation
// that is cut is checked up to there.
func claimedWords(text, said string) (wrong []string, checked int) {
	pattern := quotePattern()
	section := ""
	for _, line := range paragraphs(text) {
		if title := strings.TrimSpace(line); isHeading(title) {
			section = strings.ToLower(title)
		}
		for _, at := range pattern.FindAllStringSubmatchIndex(line, -1) {
			from, to := at[2], at[3]
			if from < 0 {
				from, to = at[4], at[5]
			}
			quote := flow(line[from:to])
			if len(quote) < minQuote || !strings.Contains(quote, " ") || !ofUser(line[:at[0]], section) {
				continue
			}
			checked++
			if !holds(said, quote) {
				wrong = append(wrong, quote)
			}
		}
	}
	return wrong, checked
}

// paragraphs are the lines of a text; a line that leaves a quotation open is
// joined with the next ones.
func paragraphs(text string) []string {
	var out []string
	open := false
	for line := range strings.SplitSeq(text, "\n") {
		if open {
			out[len(out)-1] += "\n" + line
		} else {
			out = append(out, line)
		}
		last := out[len(out)-1]
		open = strings.Count(last, "“") > strings.Count(last, "”") && len(last) < 10_000
	}
	return out
}

func isHeading(s string) bool {
	return strings.HasPrefix(s, "#") || strings.HasPrefix(s, "**") && strings.HasSuffix(strings.TrimSuffix(s, ":"), "**") ||
		len(s) < 80 && strings.HasSuffix(s, ":") && !strings.HasPrefix(s, "-")
}

// ofUser reports that the words before a quotation, or else its section, give it
// to the user.
func ofUser(before, section string) bool {
	before = strings.ToLower(before)
	user := max(strings.LastIndex(before, "user said"), strings.LastIndex(before, "user:"), strings.LastIndex(before, "user asked"),
		strings.LastIndex(before, "user wrote"), strings.LastIndex(before, "by the user"), strings.LastIndex(before, "user's words"),
		strings.LastIndex(before, "user then asked"), strings.LastIndex(before, "user requested"), strings.LastIndex(before, "user message"))
	other := max(strings.LastIndex(before, "agent"), strings.LastIndex(before, "assistant"), strings.LastIndex(before, "tool"), strings.LastIndex(before, "→"))
	if user >= 0 || other >= 0 {
		return user > other
	}
	if strings.Trim(before, " -*•0123456789.)m“[]") != "" { // it is part of a sentence
		return false
	}
	return strings.Contains(section, "user") || strings.Contains(section, "goal") || strings.Contains(section, "request")
}

// cuts are what parts a quotation: an ellipsis, and remarks in brackets.
func cuts() *regexp.Regexp {
	return regexp.MustCompile(`…(?: \(\d+ characters\))?|\.\.\.+|\[[^\]]*\]`)
}

// holds reports that all parts of a quotation were said, word by word. Signs and
// line breaks do not count.
func holds(said, quote string) bool {
	for _, part := range cuts().Split(quote, -1) {
		if !strings.Contains(said, plain(part)) {
			return false
		}
	}
	return true
}

// plain are the words of a text, in lower case, with blanks around them.
func plain(s string) string {
	fields := strings.FieldsFunc(strings.ToLower(s), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsDigit(r) })
	if len(fields) == 0 {
		return ""
	}
	return " " + strings.Join(fields, " ") + " "
}
