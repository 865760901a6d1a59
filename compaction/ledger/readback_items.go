package ledger

import (
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// item is an entry of a section: its first line, with the further lines of a quotation in it, and the
// lines that belong to it.
type item struct {
	text string
	subs []string
}

type section struct {
	title string
	items []item
}

// sections cuts a rendering at its headings and entries. The lines of quotations are indented, so that
// no text in them is taken for either.
func sections(text string) []section {
	var out []section
	for at := 0; at < len(text); {
		line, next := lineAt(text, at)
		at = next
		n := len(out)
		switch {
		case strings.HasPrefix(line, "## "):
			out = append(out, section{title: line[3:]})
		case n == 0:
		case strings.HasPrefix(line, "- "):
			out[n-1].items = append(out[n-1].items, item{text: line[2:]})
		default:
			if k := len(out[n-1].items); k > 0 {
				out[n-1].items[k-1].more(line)
			}
		}
	}
	return out
}

// more adds a line to an entry.
func (it *item) more(line string) {
	if sub, ok := strings.CutPrefix(line, "  → "); ok {
		it.subs = append(it.subs, sub)
		return
	}
	if line != "" && !strings.HasPrefix(line, margin) {
		return
	}
	line = strings.TrimPrefix(line, margin)
	if k := len(it.subs); k > 0 {
		it.subs[k-1] += "\n" + line
		return
	}
	it.text += "\n" + line
}

// handle reads "m12 " in front of a text.
func handle(s string) (m int, rest string, ok bool) {
	if !strings.HasPrefix(s, "m") {
		return 0, s, false
	}
	n := digits(s, 1)
	m, err := strconv.Atoi(s[1:n])
	if err != nil || n > 10 {
		return 0, s, false
	}
	return m, strings.TrimLeft(s[n:], " :"), true
}

// unquote reads a quotation at the beginning of a text: the size is as [abi.LedgerText] has it.
func unquote(s string) (text string, size int, ok bool) {
	s, ok = strings.CutPrefix(s, openQuote)
	end := strings.LastIndex(s, closeQuote)
	if !ok || end < 0 {
		return "", 0, false
	}
	text, tail := s[:end], s[end+len(closeQuote):]
	if strings.HasPrefix(tail, cutMark) {
		size = -1
		if _, n, ok := strings.Cut(tail, "("); ok {
			if k, err := strconv.Atoi(n[:digits(n, 0)]); err == nil {
				size = k
			}
		}
	}
	return text, size, true
}

// quoted reads "m12 “…”", or "m12: “…”".
func quoted(s string) (abi.LedgerText, bool) {
	m, rest, ok := handle(s)
	if !ok {
		return abi.LedgerText{}, false
	}
	text, size, ok := unquote(rest)
	return abi.LedgerText{Message: m, Text: text, Size: size}, ok
}

// quotedBy is quoted, with the speaker.
func quotedBy(s string, by abi.Role) *abi.LedgerText {
	q, ok := quoted(s)
	if !ok {
		return nil
	}
	q.By = string(by)
	return &q
}

func (r *reader) section(sec section) {
	for i := range sec.items {
		it := &sec.items[i]
		switch sec.title {
		case secGoal:
			r.goal(it)
		case secOpen:
			r.open(it)
		case secPlan:
			r.s.Talk.Plan = quotedBy(it.text, "")
		case secBefore:
			r.s.Talk.Before = quotedBy(it.text, "summary")
		case secRules:
			r.texts(&r.s.Talk.Rules, it, abi.RoleUser)
		case secFindings:
			r.texts(&r.s.Talk.Findings, it, abi.RoleAssistant)
		case secRequests:
			r.request(it)
		case secSteps:
			r.step(it)
		case secFiles:
			r.file(it.text)
		case secCommits:
			r.commit(it.text)
		case secCommands:
			r.command(it.text)
		case secErrors:
			r.fixed(it)
		case secLookups:
			r.lookup(it)
		case secValues:
			r.values(it)
		case secStatement:
			r.statement(it, "")
		case secCourse:
			for _, sub := range it.subs {
				r.statement(&item{text: sub}, "")
			}
		case secUser:
			r.statement(it, string(abi.RoleUser))
		case secNames:
			r.others(it.text)
		}
	}
}

// listed reads "a, b and 3 more". What is not named is a mark.
func listed(s string) []string {
	more := 0
	if i := strings.LastIndex(s, " and "); i >= 0 && strings.HasSuffix(s, " more") {
		more, _ = strconv.Atoi(strings.TrimSuffix(s[i+len(" and "):], " more"))
		s = s[:i]
	}
	out := strings.Split(s, ", ")
	for range min(more, maxPaths) {
		out = append(out, "…")
	}
	return out
}
