package verify

import (
	"regexp"
	"slices"
	"strings"
)

// patterns find what a line states.
type patterns struct {
	file, item, heading, verb, did, passes, fails, none, quote, number, cut *regexp.Regexp
}

// Words for what was done with a file.
const (
	changedWords = `modified|edited|changed|updated|rewritten|rewrote|fixed|refactored|added|removed`
	createdWords = `created|new(?: \w+)? file|new`
	// endings are those of files in source trees; what else has a dot is a field or a function.
	endings = `go|mod|sum|ts|tsx|js|jsx|mjs|cjs|py|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|md|mdx|txt|json|jsonl|yaml|yml|toml|ini|cfg|conf|env|sh|bash|sql|proto|` +
		`html|css|scss|vue|svelte|xml|svg|csv|lock|wat|tmpl|ipynb|tf|gradle`
)

func newPatterns() *patterns {
	const name = `(?:~?/|\.{1,2}/)?(?:[\w@+-][\w@.+-]*/)*[\w@+.-]*\w\.(?:` + endings + `)\b`
	return &patterns{
		file:    regexp.MustCompile(name),
		item:    regexp.MustCompile("^(?:[-*•+]|\\d+[.)])?\\s*\\**(?:(?i:(" + changedWords + "|" + createdWords + ")):?\\s+)?[`*]*(" + name + ")(?::\\d+)?[`*]*"),
		heading: regexp.MustCompile(`^(?:#{1,6}\s+(.*)|[-*•]?\s*\*\*([^*]+)\*\*:?|(?:\d+[.)]\s+)?([A-Z][^:` + "`" + `]{2,60}):)$`),
		verb:    regexp.MustCompile(`(?i)^(?:[-*•+]\s*)?\**(?:` + changedWords + `|replaced|extended|renamed|` + createdWords + `)\b`),
		did:     regexp.MustCompile(`(?i)\b(?:(` + changedWords + `)|(` + createdWords + `))\b`),
		passes:  regexp.MustCompile(`(?i)\b(?:ok|pass(?:ed|es|ing)?|succeed(?:ed|s)?|success(?:ful(?:ly)?)?)\b`),
		fails:   regexp.MustCompile(`(?i)\b(?:fail(?:ed|s|ing|ure)?|errors?|did not pass|not passing|broken)\b|exit (?:code|status) [1-9]`),
		none:    regexp.MustCompile(`(?i)\b(?:no|without|0) (?:\w+ )?(?:errors?|failures?|issues|failed)\b`),
		quote:   regexp.MustCompile(`“([^”]+)”|"([^"\n]+)"`),
		number:  regexp.MustCompile(`(?:^|[\s(])(\d[\d.,]*\d)(?:$|[\s),;:])`),
		cut:     regexp.MustCompile(`…(?: \(\d+ characters\))?|\.\.\.+|\[[^\]]*\]`),
	}
}

// class is what is stated of files.
type class int

const (
	unsaid class = iota
	isChanged
	isCreated
)

// striker reads a text line by line.
type striker struct {
	*Log
	section class
	title   string
	// deeper strikes the lines that are indented by more, which are about a file that was struck; -1 for none.
	deeper int
	// file is the latest item that begins with a file, at its indentation.
	file   string
	indent int
	fenced bool
}

// Strike returns a text without the lines that state what the log does not bear out, and these lines.
func (l *Log) Strike(text string) (kept string, struck []string) {
	s := striker{Log: l, deeper: -1}
	var out []string
	for line := range strings.SplitSeq(text, "\n") {
		if s.falsehood(line) {
			struck = append(struck, strings.TrimSpace(line))
			continue
		}
		if !s.fenced || strings.Contains(strings.ToLower(line), "user") {
			line = s.unquote(line)
		}
		out = append(out, line)
	}
	return strings.TrimSpace(strings.Join(out, "\n")), struck
}

func (s *striker) falsehood(line string) bool {
	body := strings.TrimSpace(line)
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	if s.deeper >= 0 && body != "" && indent <= s.deeper {
		s.deeper = -1
	}
	if strings.HasPrefix(body, "```") && strings.Count(body, "```")%2 == 1 {
		s.fenced = !s.fenced
	}
	switch {
	case s.deeper >= 0:
		return true
	case body == "" || s.fenced || strings.HasPrefix(body, "```"):
		return false
	}
	if title := s.heading(body); title != "" {
		s.title = strings.ToLower(title)
		s.section = s.classOf(title)
		return false
	}
	if indent <= s.indent {
		s.file = ""
	}
	if s.file != "" && s.patterns.verb.MatchString(body) && !has(s.changed, s.file) {
		return true
	}
	if s.falseFile(body, indent) {
		s.deeper = indent
		return true
	}
	return s.falseOutcome(body) || s.falseNumber(body)
}

// heading returns what a heading says. The name of a file is none.
func (s *striker) heading(body string) string {
	m := s.patterns.heading.FindStringSubmatch(body)
	if m == nil {
		return ""
	}
	for _, title := range m[1:] {
		if title != "" && !s.patterns.file.MatchString(title) {
			return title
		}
	}
	return ""
}

// classOf reads a heading or a remark.
func (s *striker) classOf(text string) class {
	low := strings.ToLower(text)
	for _, open := range []string{"unmodified", "unchanged", "not modified", "not changed", "to modify", "to change", "to be", "read/", "read or", "read and", "viewed/", "examined", "reviewed", "need", "should", "will "} {
		if strings.Contains(low, open) {
			return unsaid
		}
	}
	m := s.patterns.did.FindStringSubmatch(low)
	switch {
	case m == nil:
		return unsaid
	case m[1] != "":
		return isChanged
	}
	return isCreated
}

// falseFile reports an item that begins with a file, or a sentence about one, and states a change that no call made.
func (s *striker) falseFile(body string, indent int) bool {
	m := s.patterns.item.FindStringSubmatch(body)
	if m == nil {
		return s.falseChange(body)
	}
	s.file, s.indent = m[2], indent
	rest := strings.TrimPrefix(body, m[0])
	remark, _, _ := strings.Cut(strings.TrimLeft(rest, " \t"), ". ")
	of := s.classOf(m[1])
	if of == unsaid && strings.HasPrefix(remark, "(") || strings.HasPrefix(remark, "[") || strings.HasPrefix(remark, "-") || strings.HasPrefix(remark, "—") || strings.HasPrefix(remark, "–") {
		head := strings.Fields(strings.TrimLeft(remark, "([-—– *"))
		if len(head) > 0 {
			of = s.classOf(strings.Join(head[:min(2, len(head))], " "))
		}
	}
	if of == unsaid && !strings.Contains(strings.ToLower(remark[:min(len(remark), 40)]), "unchanged") {
		of = s.section
	}
	return of != unsaid && !s.did(m[2], of)
}

// falseChange reports a sentence such as "Modified a.go and b.go" of which a file was not.
func (s *striker) falseChange(body string) bool {
	at := s.patterns.did.FindStringIndex(body)
	if at == nil || s.classOf(body) == unsaid {
		return false
	}
	rest := strings.TrimLeft(body[at[1]:], " `*:")
	name := s.patterns.file.FindString(rest)
	return name != "" && strings.HasPrefix(rest, name) && !s.did(name, s.classOf(body[at[0]:at[1]]))
}

// did reports whether the log shows a change. A created file is one that a call wrote where nothing was known.
func (s *striker) did(file string, of class) bool {
	if of == isCreated {
		return has(s.created, file)
	}
	return has(s.changed, file)
}

// falseOutcome reports a line with a command and an outcome that no run of it had.
func (s *striker) falseOutcome(body string) bool {
	const least = 6
	key := ""
	for k := range s.commands {
		if len(k) >= least && len(k) > len(key) && strings.Contains(body, k) {
			key = k
		}
	}
	if key == "" {
		return false
	}
	_, rest, _ := strings.Cut(body, key)
	rest = s.patterns.none.ReplaceAllString(rest[:min(len(rest), 80)], " passes ")
	passes, fails := s.patterns.passes.MatchString(rest), s.patterns.fails.MatchString(rest)
	r := s.commands[key]
	return passes && !fails && !r.passed || fails && !passes && !r.failed
}

// unquote removes the marks around words that were not written, or that the user did not say and the line gives to the user:
// then they are the model's own. A line that is nothing but such a quotation becomes empty.
func (s *striker) unquote(line string) string {
	for _, at := range slices.Backward(s.patterns.quote.FindAllStringSubmatchIndex(line, -1)) {
		quote, in := group(line, at), s.all
		if s.byUser(line[:at[0]]) {
			in = s.user
		}
		if !isSentence(quote) || s.patterns.holds(in, quote) {
			continue
		}
		if rest := line[:at[0]] + line[at[1]:]; len(strings.TrimSpace(rest)) < len(quote)/3 {
			return ""
		}
		line = line[:at[0]] + quote + line[at[1]:]
	}
	return line
}

// isSentence reports more than a name.
func isSentence(quote string) bool { return len(quote) >= 12 && strings.Contains(quote, " ") }

// byUser reports that the words before a quotation give it to the user, or else the section.
func (s *striker) byUser(before string) bool {
	before = strings.ToLower(before)
	last := func(words ...string) (at int) {
		at = -1
		for _, w := range words {
			at = max(at, strings.LastIndex(before, w))
		}
		return at
	}
	user, other := last("user"), last("agent", "assistant", "tool", "→", "error", "output", "returned", "says:", "message:")
	if user >= 0 || other >= 0 {
		return user > other
	}
	if strings.Trim(before, " -*•0123456789.)m“\"[]") != "" {
		return false
	}
	return strings.Contains(s.title, "user") || strings.Contains(s.title, "request")
}

// falseNumber reports a number of four digits and more that the log does not hold. A round one is an estimate.
func (s *striker) falseNumber(body string) bool {
	const least = 4
	for _, m := range s.patterns.number.FindAllStringSubmatch(body, -1) {
		n := m[1]
		if round := len(strings.Trim(n, "0.,")) == 1; !round && len(n)-strings.Count(n, ".")-strings.Count(n, ",") >= least && !strings.Contains(s.all, words(n)) && !strings.Contains(s.all, words(strings.ReplaceAll(n, ",", ""))) {
			return true
		}
	}
	return false
}

// group is the group of a match that took part.
func group(s string, at []int) string {
	for i := 2; i+1 < len(at); i += 2 {
		if at[i] >= 0 {
			return s[at[i]:at[i+1]]
		}
	}
	return ""
}
