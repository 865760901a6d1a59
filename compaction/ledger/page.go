package ledger

import (
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/abi"
)

// headStart begins every rendering.
const headStart = "State after message m"

// Parts of the first line.
const (
	headFolder = ", in "
	headBelow  = ", most changes below "
	headBranch = ", on branch "
	headEnd    = " (mN: message number)"
)

// Headings of a rendering.
const (
	secGoal      = "Goal"
	secOpen      = "Open"
	secPlan      = "Plan"
	secRules     = "What the user wants kept in mind"
	secRequests  = "Requests and what became of them"
	secSteps     = "Last steps"
	secFiles     = "Files"
	secCommits   = "Commits"
	secCommands  = "Commands"
	secErrors    = "Errors that were fixed"
	secFindings  = "Findings, in the agent's words"
	secLookups   = "Looked up"
	secValues    = "Records"
	secStatement = "Said, word for word"
	secUser      = "The user said"
	secSubjects  = "Named most"
	secCourse    = "Spoken of, in order"
	secNames     = "Other names"
	secBefore    = "From a summary of what came before the log"
)

// page is a rendering under way. It is never longer than its limit.
type page struct {
	s     *abi.Ledger
	b     []byte
	limit int
	// dir is left out of paths where a whole path is given elsewhere.
	dir   string
	names []ranked
	// shown are names that the page holds.
	shown map[string]bool
	share shares
	// quoted are the messages of requests that the page quotes, and of what the agent wrote last about them.
	quoted map[int]bool
	lex    *lexicon // the words of a dialogue
	voices map[string]bool
	rules  []string // items of their section
	gone   map[string]bool
}

// section appends items under a heading while they fit into a share of the page. An item that does
// not fit is skipped, and the next one tried.
func (p *page) section(title string, share float64, items []string) {
	room := int(share * float64(p.limit))
	head := "\n## " + title + "\n"
	first := true
	for _, item := range items {
		n := len(item) + 1
		if first {
			n += len(head)
		}
		if item == "" || n > room || len(p.b)+n > p.limit {
			continue
		}
		if first {
			p.b = append(p.b, head...)
			first = false
		}
		p.b = append(append(p.b, item...), '\n')
		room -= n
	}
}

// Marks around a quotation.
const (
	openQuote  = "“"
	closeQuote = "”"
	cutMark    = " …"
)

// quote is a text as it was written, in marks. Lines after the first are indented.
func quote(s string) string {
	return openQuote + indent(clean(s)) + closeQuote
}

// quoteCut is a quotation of at most n bytes, the marks included, of a text that may be cut already,
// as its size reports. What is missing is counted behind it where that is known. It is empty when n is too
// small.
func quoteCut(s string, size, n int) string {
	if q := quote(s); len(q) <= n && (size == 0 || size == len(s)) {
		return q
	}
	mark := cutMark
	if size >= 0 && max(size, len(s)) > 400 {
		mark += " (" + strconv.Itoa(max(size, len(s))) + " characters)"
	}
	room := n - len(openQuote) - len(closeQuote) - len(mark)
	if room < 8 {
		return ""
	}
	return openQuote + indent(fit(clean(s), room)) + closeQuote + mark
}

// fit is the beginning of a text that is at most n bytes long when it is indented. It ends with a blank
// if one is near, else with a whole word, as half of an identifier is a wrong one. A single word is cut.
func fit(s string, n int) string {
	used, at := 0, 0
	for at < len(s) && used < n {
		used++
		if s[at] == '\n' {
			used += len(margin)
		}
		at++
	}
	if used > n {
		at--
	}
	if at >= len(s) {
		return s
	}
	whole := s
	s = cut(s, at)
	if i := strings.LastIndexAny(s, " \n"); i > len(s)*2/3 {
		s = s[:i]
	} else if i := wordStart(whole, len(s)); i > 0 {
		s = s[:i]
	}
	return strings.TrimRight(s, " \n")
}

// wordStart is where the word begins that a cut at a place would part, else that place. Scripts without
// blanks between words have no such words.
func wordStart(s string, at int) int {
	if at >= len(s) || !isWordByte(s[at]) {
		return at
	}
	for at > 0 && isWordByte(s[at-1]) {
		at--
	}
	return at
}

func isWordByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_'
}

// margin is put in front of the further lines of a quotation, so that none of them is taken for a
// line of the page.
const margin = "    "

func indent(s string) string { return strings.ReplaceAll(s, "\n", "\n"+margin) }

// clean replaces what no text should hold: broken characters, and control characters but tabs
// and line ends.
func clean(s string) string {
	ok := true
	for i := range len(s) {
		if c := s[i]; c-' ' >= 0x7f-' ' && c != '\n' && c != '\t' {
			ok = false
			break
		}
	}
	if ok {
		return s
	}
	s = strings.ToValidUTF8(s, "?")
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r == 0x7f {
			return ' '
		}
		return r
	}, s)
}

// line is a text on one line, clean.
func line(s string, n int) string {
	s = clean(s)
	if strings.ContainsAny(s, "\n\t") {
		s = strings.Join(strings.Fields(s), " ")
	}
	if len(s) > n {
		s = cut(s, n) + cutMark
	}
	return s
}

// leastLine is how long line(s, n) is at least.
func leastLine(s string, n int) int {
	if strings.IndexByte(s, '\n') >= 0 || strings.IndexByte(s, '\t') >= 0 || !utf8.ValidString(s) {
		return 0
	}
	return min(len(s), n)
}

// at is the handle of a message.
func at(m int) string { return "m" + strconv.Itoa(m) }

// relative leaves the working directory out of a text.
func (p *page) relative(s string) string {
	if len(p.dir) < 2 {
		return s
	}
	return strings.ReplaceAll(s, p.dir+"/", "")
}
