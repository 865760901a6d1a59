package ledger

import (
	"cmp"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// leastItem is the room below which no item is tried, mostMisses how many whole requests may not fit before older ones are
// listed in short.
const (
	leastItem  = 24
	mostMisses = 6
)

// requests lists what the user asked for and what became of it, the newest whole, the others in
// short, in order of messages.
func (p *page) requests() []string {
	list := p.s.Talk.Requests
	room := int(p.share.requests*float64(p.limit)) - len(secRequests) - 8
	long := room * 3 / 4
	items := make([]string, len(list))
	misses := 0
	for i := range slices.Backward(list) {
		if long < leastItem || misses == mostMisses {
			break
		}
		if list[i].Text == "" || p.quoted[list[i].Message] {
			continue
		}
		full := p.requestItem(&list[i])
		if len(full)+1 > long {
			misses++
			continue
		}
		items[i] = full
		p.noteQuoted(&list[i])
		long -= len(full) + 1
		room -= len(full) + 1
	}
	for i := range slices.Backward(list) {
		if room < leastItem {
			break
		}
		if items[i] != "" || list[i].Text == "" || p.quoted[list[i].Message] {
			continue
		}
		short := "- " + at(list[i].Message) + " " + quoteFirst(list[i].Text, list[i].Size, 76)
		if len(short)+1 > room {
			break
		}
		items[i] = short
		room -= len(short) + 1
	}
	return items
}

// maxShown is how many bytes of what the agent wrote about a request are quoted.
const maxShown = 260

// shortLine is below how many bytes a first line is quoted with the next one.
const shortLine = 24

// quoteFirst quotes the first line of a text.
func quoteFirst(s string, size, n int) string {
	first := firstLine(s)
	if len(first) < shortLine && len(first) < len(strings.TrimSpace(s)) { // a heading, which does not say much
		start := strings.Index(s, first)
		_, next := lineAt(s, start)
		second := firstLine(s[next:])
		first = s[start : next+strings.Index(s[next:], second)+len(second)]
	}
	if size == 0 && len(first) < len(strings.TrimSpace(s)) {
		size = len(s)
	}
	return quoteCut(first, size, n)
}

func (p *page) requestItem(r *abi.LedgerRequest) string {
	out := "- " + at(r.Message) + " " + quoteFirst(r.Text, r.Size, 180)
	if end := ending(r, out); end != "" && !p.share.talk {
		out += belowMark + atItsEnd + quoteCut(end, 0, 180)
	}
	if r.Question != nil && len(r.Text) < 80 {
		out += "\n  → " + asked(r.Question, 160)
	}
	return strings.Join(append([]string{out}, p.became(r)...), belowMark)
}

// became lists what was changed and committed for a request, and what the agent wrote last about it.
func (p *page) became(r *abi.LedgerRequest) (lines []string) {
	var done []string
	if files := slices.DeleteFunc(slices.Clone(r.Files), p.isGone); len(files) > 0 {
		done = append(done, "changed "+baseNames(files, 5))
	}
	if len(r.Commits) > 0 {
		done = append(done, "committed "+baseNames(r.Commits, 3))
	}
	switch {
	case r.Stopped == 0:
	case continued(r):
		done = append(done, "a call was refused at "+at(r.Stopped))
	default:
		done = append(done, "stopped at "+at(r.Stopped))
	}
	if len(done) > 0 {
		lines = append(lines, strings.Join(done, "; "))
	}
	if a := outcome(r); a != "" {
		lines = append(lines, a)
		if n := p.next(r); n != nil && rejects(n.Text) {
			lines = append(lines, theUser+at(n.Message)+": "+quoteFirst(n.Text, n.Size, 90))
		}
	}
	return lines
}

// next is the request behind another one, nil for none.
func (p *page) next(r *abi.LedgerRequest) *abi.LedgerRequest {
	list := p.s.Talk.Requests
	i, _ := slices.BinarySearchFunc(list, r.Message+1, func(o abi.LedgerRequest, m int) int { return cmp.Compare(o.Message, m) })
	if i == len(list) {
		return nil
	}
	return &list[i]
}

// rejects reports a text of the user that takes back or blames what was done.
func rejects(text string) bool {
	low := strings.ToLower(cut(text, maxStep))
	return startsWith(low, []string{"no ", "no,", "no.", "nope", "nah", "wrong", "that's wrong", "that is wrong", "that's not", "this is wrong", "stop "}) ||
		hasCue(low, []string{"undo", "undid", "revert", "roll back", "rolled back", "fucked", "you broke", "is broken now", "still broken", "still fails"})
}

// belowMark begins a line that belongs to an item.
const belowMark = "\n  → "

// theAgent begins what the agent wrote about a request, theUser what the user said to that.
const (
	theAgent = "the agent at "
	theUser  = "the user at "
)

// outcome is what the agent wrote last about a request.
func outcome(r *abi.LedgerRequest) string {
	if r.Outcome == nil {
		return ""
	}
	return theAgent + at(r.Outcome.Message) + ": " + quotePieces(r.Outcome.Text, r.Outcome.Size, maxShown)
}

// quotePieces quotes pieces of a text, each on a line of its own, in at most n bytes: the first one, and those behind it
// that fit.
func quotePieces(s string, size, n int) string {
	first, rest, _ := strings.Cut(s, "\n")
	if rest == "" {
		return quoteCut(first, size, n)
	}
	out := quoteCut(first, 0, n)
	for rest != "" {
		var piece string
		piece, rest, _ = strings.Cut(rest, "\n")
		if q := quote(piece); len(out)+len(belowMark)+len(q) <= n {
			out += belowMark + q
		}
	}
	return out
}

// steps are the latest events in order. Calls that follow each other and read the same are one.
func (p *page) steps() []string {
	list := p.s.Steps
	room := int(p.share.steps*float64(p.limit)) - len(secSteps) - 8
	items := make([]string, len(list))
	for i := len(list) - 1; i >= 0; {
		s, last, same := &list[i], i, 1
		for i--; i >= 0 && s.By == abi.RoleTool && list[i].By == s.By && list[i].Text == s.Text && list[i].Result == s.Result; i-- {
			same++
		}
		if s.By != abi.RoleTool && (p.share.talk || last < len(list)-1 && p.quoted[s.Message]) { // a section before this one has it
			continue
		}
		item := p.stepItem(s, last == len(list)-1)
		if same > 1 {
			item += ", " + strconv.Itoa(same) + " times"
		}
		if len(item)+1 > room {
			break
		}
		items[last] = item
		room -= len(item) + 1
	}
	return items
}

func (p *page) stepItem(s *abi.LedgerStep, last bool) string {
	most := 260
	if last {
		most = maxStep
	}
	switch s.By {
	case abi.RoleUser:
		return "- " + at(s.Message) + " the user: " + quoteFirst(s.Text, s.Size, 90)
	case abi.RoleTool:
		most := 160
		if p.share.talk {
			most = maxStep
		}
		out := "- " + at(s.Message) + " " + line(p.relative(s.Text), most)
		if s.Result != "" && s.Result != abi.CommandEnded {
			out += " → " + closed(line(p.relative(s.Result), 160))
		}
		return out
	default:
	}
	return "- " + at(s.Message) + " " + quoteCut(s.Text, s.Size, most)
}

// closed ends a quotation that was cut.
func closed(s string) string {
	if strings.Count(s, openQuote) > strings.Count(s, closeQuote) {
		return strings.TrimSuffix(s, cutMark) + closeQuote + cutMark
	}
	return s
}

func (p *page) commits() []string {
	list := p.s.Work.Commits
	items := make([]string, len(list))
	room := int(p.share.commits*float64(p.limit)) - len(secCommits) - 8
	for i := range slices.Backward(list) {
		c := &list[i]
		item := "- " + at(c.Message) + " " + line(c.Hash, 40) + " on " + line(c.Branch, 80) + ": " + line(c.Text, 120)
		if len(item)+1 <= room {
			items[i] = item
			room -= len(item) + 1
		}
	}
	return items
}

// commands are the most used and the latest that are not among the failures.
func (p *page) commands() []string {
	order := make([]int, len(p.s.Work.Commands))
	for i := range order {
		order[i] = i
	}
	list, edited := p.s.Work.Commands, p.edited()
	scores := make([]float64, len(list))
	for i := range list {
		c := &list[i]
		w := 1.0
		switch {
		case publishes(c.Key):
			w = 10
		case c.Check:
			w = 2
		case c.Reads:
			w = .4
		}
		scores[i] = float64(w*math.Sqrt(float64(c.Runs))) * (.3 + p.recency(c.Message))
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Or(cmp.Compare(scores[b], scores[a]), cmp.Compare(b, a)) })
	return p.filled(secCommands, p.share.commands, len(order), func(i, room int) string {
		c := &list[order[i]]
		if leastLine(c.Key, 200) >= room || c.Reads && c.Outcome != abi.CommandFailed {
			return ""
		}
		item := "- " + at(c.Message) + " `" + line(c.Key, 200) + "` " + c.Outcome
		if c.Runs > 1 {
			item += ", " + strconv.Itoa(c.Runs) + " runs"
		}
		switch {
		case c.Line != "" && c.Outcome == abi.CommandFailed:
			item += ": " + quoteCut(line(c.Line, 120), 0, 140)
		case c.Check && c.Outcome == abi.CommandOK && c.Message+1 < edited:
			item += ", before the latest changes"
		}
		return item
	})
}

// edited is the message of the latest change of a file that is still there.
func (p *page) edited() (latest int) {
	for i := range p.s.Work.Files {
		if f := &p.s.Work.Files[i]; f.Changes > 0 && f.State == "" {
			latest = max(latest, f.Changed)
		}
	}
	return latest
}

// shortestItem is less than any item of a section has.
const shortestItem = 8

// filled are the first items of a section that fit into its share. An item that does not fit is skipped; it may be empty
// where that is known before it is made.
func (p *page) filled(title string, share float64, n int, item func(i, room int) string) (out []string) {
	room := min(int(share*float64(p.limit)), p.limit-len(p.b)) - len("\n## "+title+"\n")
	for i := 0; i < n && room > shortestItem; i++ {
		if s := item(i, room); s != "" && len(s) < room {
			out, room = append(out, s), room-len(s)-1
		}
	}
	return out
}

// passedAt begins the message that shows a command succeed.
const passedAt = "passed at "

// errors are the failures that were seen to pass later, newest first.
func (p *page) errors() []string {
	list := p.s.Work.Errors
	return p.filled(secErrors, p.share.errors, len(list), func(i, _ int) string {
		e := &list[len(list)-1-i]
		if e.Passed == 0 || e.Line == "" {
			return ""
		}
		item := "- " + at(e.Message) + " `" + line(e.Key, 100) + "`: " + quoteCut(e.Line, 0, 160) + "\n  → "
		if e.PassedBy != "" {
			item += "`" + line(e.PassedBy, 100) + "` "
		}
		item += passedAt + at(e.Passed)
		if len(e.Edits) > 0 {
			item += " after changes to " + baseNames(e.Edits, 3)
		}
		return item
	})
}

func (p *page) lookups() []string {
	list := p.s.Work.Lookups
	return p.filled(secLookups, p.share.lookups, len(list), func(i, _ int) string {
		k := &list[len(list)-1-i]
		item := "- " + at(k.Message) + " " + line(k.Tool, 60) + " " + quoteCut(k.Query, 0, 160)
		if k.Line != "" {
			item += "\n  → " + quoteCut(k.Line, 0, 160)
		}
		return item
	})
}
