package future

import (
	"path"
	"regexp"
	"slices"
	"strings"
)

// class is what a text states of a file.
type class int

const (
	unsaid class = iota
	stateRead
	stateModified
	stateCreated
)

// listed are the files that a text lists, by what it states of them.
type listed struct{ read, modified, created paths }

// reader reads the statements of a text on files.
type reader struct {
	out listed
	// section is what the heading above states of the files below it.
	section class
	// file and indent belong to the item that a file begins.
	file   string
	indent int
	// code reports a fenced block, fence its indentation, blank an empty line since the heading.
	code  bool
	fence int
	blank bool

	patterns
}

type patterns struct{ file, item, heading, marked, verb, sentence, noted, grouped *regexp.Regexp }

// filePattern is a path or a file name with one of the endings that source trees
// have. What is called as a function or is a field is none.
const filePattern = `(?:~?/|\.{1,2}/)?(?:\.?[\w@+-][\w@.+-]*/)*[\w@+.-]*\w\.(?:go|mod|sum|ts|tsx|js|jsx|mjs|cjs|py|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|` +
	`md|mdx|txt|json|jsonl|yaml|yml|toml|ini|cfg|conf|env|sh|bash|zsh|sql|proto|html|css|scss|vue|svelte|xml|svg|csv|lock|wat|tmpl|ipynb|tf|gradle)\b`

func newPatterns() patterns {
	name := "[`*“\"]*(" + filePattern + ")(?::\\d+)?[`*”\"]*"
	return patterns{
		file:     regexp.MustCompile(filePattern),
		item:     regexp.MustCompile(`^(?:[-*•+]|\d+[.)])?\s*(?:\*\*)?(?:(?i:(modified|edited|changed|updated|created|added|new(?: file)?|read|viewed))\s*:?\s*)?` + name),
		heading:  regexp.MustCompile(`^(?:#{1,6}\s+(.*)|[-*•]?\s*\*\*([^*]+)\*\*:?|<([a-z][a-z_-]+)>|(?:\d+[.)]\s+)?([A-Z][^:` + "`" + `]{2,60}):)$`),
		marked:   regexp.MustCompile(`(?i)(?:[(\[*—–-]\s*\**|^\s+(?:was |is )?)(created|new file|new|modified|edited|changed|updated|rewritten|read|viewed|unchanged)\b`),
		verb:     regexp.MustCompile(`(?i)^(?:[-*•+]\s*)?\**(?:(added|modified|updated|changed|fixed|removed|replaced|rewrote|refactored|extended|edited|renamed)|(created|new (?:file|test file|module|package))|(read|reviewed|viewed|examined))\b`),
		noted:    regexp.MustCompile(`^[-*•]\s+(?i:(changed|created|read))\s+(/\S*\w)\s+\(m\d+`),
		grouped:  regexp.MustCompile(`(?i)^[-*•]?\s*(?:changed|modified) in ` + "`?([^`:]+)`?" + `:\s*(.*)$`),
		sentence: regexp.MustCompile(`(?i)\b(?:(modified|edited|changed|updated|rewrote)|(created|wrote))\s+(?:the\s+)?(?:new\s+)?(?:files?\s+)?` + name + `((?:(?:,| and|, and)\s*` + name + `)*)`),
	}
}

// statedFiles reads what a text states of files.
func statedFiles(text string) *listed {
	r := &reader{out: listed{read: paths{}, modified: paths{}, created: paths{}}, patterns: newPatterns()}
	for line := range strings.SplitSeq(text, "\n") {
		r.line(line)
	}
	return &r.out
}

func (r *reader) line(line string) {
	body := strings.TrimSpace(line)
	indent := len(line) - len(strings.TrimLeft(line, " \t"))
	if r.code && body != "" && indent < r.fence { // the item of a list that held the block has ended
		r.code = false
	}
	if strings.HasPrefix(body, "```") {
		r.code, r.fence = !r.code, indent
		return
	}
	if body == "" {
		r.blank = true
	}
	if body == "" || r.code {
		return
	}
	if title := r.title(body); title != "" {
		r.section, r.file, r.blank = classOf(title), "", false
		return
	}
	if m := r.noted.FindStringSubmatch(body); m != nil { // a file of any name, with the message of the change
		r.state(m[2], classOf(m[1]))
		return
	}
	if m := r.grouped.FindStringSubmatch(body); m != nil {
		r.group(m[1], m[2])
		return
	}
	if m := r.item.FindStringSubmatch(body); m != nil {
		r.file, r.indent = m[2], indent
		r.begin(m[1], strings.TrimPrefix(body, m[0]), strings.ContainsAny(body[:1], "-*•+0123456789"))
	} else if r.file != "" && indent > r.indent {
		if m := r.verb.FindStringSubmatch(body); m != nil {
			r.state(r.file, first3(m[1], m[2], m[3]))
		}
	}
	for _, m := range r.sentence.FindAllStringSubmatch(body, -1) {
		c := first3(m[1], m[2], "")
		r.state(m[3], c)
		for _, f := range r.patterns.file.FindAllString(m[4], -1) {
			r.state(f, c)
		}
	}
}

// title returns what a heading says, "" for another line. The name of a file is
// no heading, whatever is around it.
func (r *reader) title(body string) string {
	m := r.heading.FindStringSubmatch(body)
	if m == nil {
		return ""
	}
	for _, s := range m[1:] {
		if s != "" && !r.patterns.file.MatchString(s) {
			return s
		}
	}
	return ""
}

// begin reads an item that begins with a file: a word before the name or a mark
// behind it states something, else the heading does, which ends at an empty line for
// what is no item of a list.
func (r *reader) begin(before, rest string, item bool) {
	rest, _, _ = strings.Cut(rest, ". ")
	c := classOf(before)
	if c == unsaid {
		if m := r.marked.FindStringSubmatch(rest); m != nil {
			c = classOf(m[1])
			if strings.EqualFold(m[1], "unchanged") {
				return
			}
		}
	}
	if c == unsaid && (item || !r.blank) {
		c = r.section
	}
	r.state(r.file, c)
	if c == unsaid || before == "" && r.section == unsaid {
		return
	}
	for more := range strings.SplitSeq(rest, ",") { // a list in one line
		more = strings.Trim(more, " `*")
		if name := r.patterns.file.FindString(more); name != "" && strings.HasPrefix(more, name) {
			r.state(name, c)
		}
	}
}

// group reads the changed files of a folder: "changed in DIR: a.go (m3), b.go".
func (r *reader) group(folder, list string) {
	for item := range strings.SplitSeq(list, ",") {
		name := r.patterns.file.FindString(item)
		if name == "" {
			continue
		}
		c := stateModified
		if strings.Contains(item, "created") {
			c = stateCreated
		}
		r.state(path.Join(folder, name), c)
	}
}

// classOf reads a word or a heading.
func classOf(s string) class {
	s = strings.ToLower(s)
	holds := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
	}
	switch {
	case s == "", holds("examined/modified", "read/modified", "viewed/modified", "read or modified", "read and modified"), holds("unmodified", "unchanged", "to modify", "to change", "not modified"):
		return unsaid
	case holds("modif", "chang", "edit", "updated", "written", "rewritten", "touched"):
		return stateModified
	case holds("creat", "new file", "added", "new-file") || s == "new":
		return stateCreated
	case strings.HasPrefix(s, "read") || holds("files read", "read files", "read-files", "viewed", "examined", "reviewed"):
		return stateRead
	}
	return unsaid
}

func first3(modified, created, read string) class {
	switch {
	case modified != "":
		return stateModified
	case created != "":
		return stateCreated
	case read != "":
		return stateRead
	}
	return unsaid
}

func (r *reader) state(file string, c class) {
	file = path.Clean(file)
	switch c {
	case unsaid:
	case stateRead:
		r.out.read[file] = true
	case stateModified:
		r.out.modified[file] = true
	case stateCreated:
		r.out.created[file] = true
	}
}
