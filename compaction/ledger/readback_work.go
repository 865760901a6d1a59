package ledger

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// sortBy sorts by a key, and keeps the order of equals. It sorts places, so that the guest holds one sort
// and not one for each type.
func sortBy[T any](list []T, key func(*T) int) {
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(key(&list[a])-key(&list[b]), a-b) })
	sorted := make([]T, len(list))
	for i, at := range order {
		sorted[i] = list[at]
	}
	copy(list, sorted)
}

// step reads a call, or a text of the agent or of the user.
func (r *reader) step(it *item) {
	m, rest, ok := handle(it.text)
	if !ok {
		return
	}
	s := abi.LedgerStep{Message: m, By: abi.RoleTool, Text: rest}
	if text, size, ok := unquote(strings.TrimPrefix(rest, "the user: ")); ok && (strings.HasPrefix(rest, openQuote) || strings.HasPrefix(rest, "the user: ")) {
		s.By, s.Text, s.Size = abi.RoleAssistant, text, size
		if strings.HasPrefix(rest, "the user: ") {
			s.By = abi.RoleUser
		}
	} else if i := strings.LastIndex(rest, " → "); i >= 0 {
		s.Text, s.Result = rest[:i], rest[i+len(" → "):]
	}
	r.s.Steps = append(r.s.Steps, s)
}

// failed reads a failure that is open: what is behind its message number, and the lines below.
func (r *reader) failed(s string, subs []string) {
	m, rest, ok := handle(s)
	rest, isOpen := strings.CutPrefix(rest, ", not seen to pass since: `")
	if !ok || !isOpen {
		return
	}
	e := abi.LedgerError{Message: m, Key: strings.TrimSuffix(rest, "`"), Runs: 2, Check: true}
	for _, sub := range subs {
		if list, ok := strings.CutPrefix(sub, "changed since: "); ok {
			e.Edits = listed(list)
		} else if text, _, ok := unquote(sub); ok {
			e.Line = text
		}
	}
	r.s.Work.Errors = append(r.s.Work.Errors, e)
}

// fixed reads a failure that was seen to pass.
func (r *reader) fixed(it *item) {
	m, rest, ok := handle(it.text)
	key, line, isQuote := strings.Cut(strings.TrimPrefix(rest, "`"), "`: ")
	text, _, isText := unquote(line)
	if !ok || !isQuote || !isText || len(it.subs) == 0 {
		return
	}
	e := abi.LedgerError{Message: m, Key: key, Line: text, Runs: 1}
	by, passed, _ := strings.Cut(it.subs[0], passedAt)
	e.PassedBy = strings.Trim(by, "` ")
	passed, edits, _ := strings.Cut(passed, " after changes to ")
	e.Passed, _, _ = handle(passed)
	if edits != "" {
		e.Edits = listed(edits)
	}
	if e.Passed > 0 {
		r.s.Work.Errors = append(r.s.Work.Errors, e)
	}
}

// file reads a line of the list of files.
func (r *reader) file(s string) {
	switch {
	case strings.HasPrefix(s, "changed in "):
		r.group(s[len("changed in "):])
	case strings.HasPrefix(s, "read "):
		r.fileLine(s[len("read "):], abi.LedgerFile{Reads: 1})
	case strings.HasPrefix(s, "created "):
		r.fileLine(s[len("created "):], abi.LedgerFile{Changes: 1, Created: 1})
	case strings.HasPrefix(s, "changed "):
		r.fileLine(s[len("changed "):], abi.LedgerFile{Changes: 1})
	}
}

// fileLine reads "path (m3, changed m5, rm, now deleted): names", of which most may be missing.
func (r *reader) fileLine(s string, f abi.LedgerFile) {
	head, names, _ := strings.Cut(s, "): ")
	i := strings.LastIndex(head, " (m")
	if i < 0 {
		return
	}
	for n, part := range strings.Split(strings.TrimSuffix(head[i+2:], ")"), ", ") {
		state, isState := strings.CutPrefix(part, "now ")
		m, _, isMessage := handle(strings.TrimPrefix(part, "changed "))
		switch {
		case isState:
			f.State = state
		case !isMessage:
			f.Verb = part
		case f.Reads > 0:
			f.Read = m
		case n == 0 && f.Created > 0:
			f.Created, f.Changed = m, m
		default:
			f.Changed = m
		}
	}
	if f.State != "" {
		f.At = f.Changed
	}
	f.Path = head[:i]
	r.s.Work.Files = append(r.s.Work.Files, f)
	list := strings.Fields(names)
	r.name(f.Path, 0, 1, "")
	for i, n := range list {
		r.name(n, i, len(list), f.Path)
	}
}

// group reads "folder: a.go (m3), b.go (created m9, now deleted)".
func (r *reader) group(s string) {
	dir, list, ok := strings.Cut(s, ": ")
	if !ok {
		return
	}
	if dir == "." {
		dir = ""
	} else if dir != "/" {
		dir += "/"
	}
	for one := range strings.SplitSeq(list, "), ") {
		name, what, ok := strings.Cut(strings.TrimSuffix(one, ")"), " (")
		if !ok {
			continue
		}
		f := abi.LedgerFile{Path: dir + name, Changes: 1}
		what, created := strings.CutPrefix(what, "created ")
		m, rest, _ := handle(what)
		f.Changed = m
		if created {
			f.Created = m
		}
		if state, ok := strings.CutPrefix(rest, ", now "); ok {
			f.State, f.At = state, m
		}
		r.s.Work.Files = append(r.s.Work.Files, f)
		r.name(f.Path, 0, 1, "")
	}
}

func (r *reader) commit(s string) {
	m, rest, ok := handle(s)
	hash, rest, isHash := strings.Cut(rest, " on ")
	branch, text, isText := strings.Cut(rest, ": ")
	if ok && isHash && isText {
		r.s.Work.Commits = append(r.s.Work.Commits, abi.LedgerCommit{Message: m, Hash: hash, Branch: branch, Text: text})
	}
}

func (r *reader) command(s string) {
	m, rest, ok := handle(s)
	if !ok || !strings.HasPrefix(rest, "`") {
		return
	}
	for _, outcome := range []string{abi.CommandOK, abi.CommandFailed, abi.CommandEnded} {
		i := strings.LastIndex(rest, "` "+outcome)
		if i < 1 {
			continue
		}
		c := abi.LedgerCommand{Key: rest[1:i], Text: rest[1:i], Message: m, Runs: 1, Outcome: outcome}
		tail := rest[i+2+len(outcome):]
		if runs, ok := strings.CutPrefix(tail, ", "); ok {
			n := digits(runs, 0)
			c.Runs, _ = strconv.Atoi(runs[:n])
			tail = strings.TrimPrefix(runs[n:], " runs")
		}
		c.Line, _, _ = unquote(strings.TrimPrefix(strings.TrimPrefix(tail, ":"), " "))
		c.Runs = max(c.Runs, 1)
		c.Check, c.Reads = isCheck(checkers(), c.Key), readsOnly(c.Key)
		r.s.Work.Commands = append(r.s.Work.Commands, c)
		return
	}
}

func (r *reader) lookup(it *item) {
	m, rest, ok := handle(it.text)
	tool, query, isTool := strings.Cut(rest, " ")
	text, _, isQuote := unquote(query)
	if !ok || !isTool || !isQuote {
		return
	}
	k := abi.LedgerLookup{Message: m, Tool: tool, Query: text}
	if len(it.subs) > 0 {
		k.Line, _, _ = unquote(it.subs[0])
	}
	r.s.Work.Lookups = append(r.s.Work.Lookups, k)
}

// others reads a line of names.
func (r *reader) others(s string) {
	labels := nameLabels()
	named := strings.HasPrefix(s, labels[3][2:])
	for _, label := range labels {
		s = strings.TrimPrefix(s, label[2:])
	}
	names := strings.Fields(s)
	if named { // its numbers have words behind them, which are no names
		names = slices.DeleteFunc(names, func(n string) bool { return n == strings.ToLower(n) && !strings.ContainsAny(n, "0123456789") })
	}
	for i, n := range names {
		r.name(n, i, len(names), "")
	}
}

// name restores a name. Its place in the list is its rank.
func (r *reader) name(text string, i, of int, home string) {
	if len(r.names) >= maxNames || len(text) < minToken || len(text) > maxToken {
		return
	}
	m := max(1, r.s.Messages-r.s.Messages*i*6/10/max(of, 1))
	r.names = append(r.names, abi.LedgerName{Text: text, Count: 1, Call: true, Last: m, Own: m, Home: home})
}
