package ledger

import (
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// open lists what is not finished.
func (p *page) open() []string {
	var out []string
	t := &p.s.Talk
	for _, state := range []string{abi.TaskDoing, abi.TaskOpen} {
		for i := range t.Tasks {
			if task := &t.Tasks[i]; task.Status == state {
				out = append(out, "- ["+state+"] "+numbered(task.ID)+line(task.Text, maxLine))
			}
		}
	}
	if q := t.Question; q != nil {
		out = append(out, "- the agent asked at "+at(q.Message)+": "+quoteCut(q.Text, q.Size, 260))
	}
	for i := range slices.Backward(p.s.Work.Errors) {
		e := &p.s.Work.Errors[i]
		recent := e.Message >= p.s.Messages-recentSteps
		if e.Passed != 0 || isMissing(e.Line) || !e.Check && (!recent && e.Runs < 2 || readsOnly(e.Key)) {
			continue
		}
		out = append(out, failure(e))
	}
	room := int(p.share.open*float64(p.limit)) - len(secOpen) - 8
	list := stopped(t.Requests, max(room/2, room-bytesOf(out)))
	return append(fitting(out, room-bytesOf(list)), list...)
}

// recentSteps is how many messages ago a command failed at most that is no check and still open work.
const recentSteps = 12

// isMissing reports the line of a failure that a program or task is not there, which is a fact, and no open work.
func isMissing(line string) bool {
	for _, s := range []string{"command not found", "ERROR no task ", "Missing script:", "No module named pytest"} {
		if strings.Contains(line, s) {
			return true
		}
	}
	return false
}

// maxStopped is how many requests that were stopped are quoted at most.
const maxStopped = 8

// stopped lists the requests that were stopped: as many of the latest as fit are quoted, of the others the number is
// given.
func stopped(list []abi.LedgerRequest, room int) []string {
	quotes := make([]string, len(list))
	for n := maxStopped; ; n-- {
		if out := quoteStopped(list, quotes, n); n == 0 || bytesOf(out) <= room {
			return out
		}
	}
}

// quoteStopped keeps what it quotes in quotes.
func quoteStopped(list []abi.LedgerRequest, quotes []string, n int) (out []string) {
	older := ""
	for i := range slices.Backward(list) {
		r := &list[i]
		switch {
		case r.Stopped == 0 || continued(r):
		case len(out) < n && r.Text != "":
			if quotes[i] == "" {
				quotes[i] = "- stopped at " + at(r.Stopped) + ": request " + at(r.Message) + " " + quoteCut(firstLine(r.Text), 0, 90)
			}
			out = append(out, quotes[i])
		case len(older) < 400:
			older += " " + at(r.Message)
		}
	}
	if older != "" {
		out = slices.Insert(out, 0, stoppedEarlier+older)
	}
	return out
}

// continued reports a request of which one call was refused, and not the whole: the agent wrote about it later.
func continued(r *abi.LedgerRequest) bool { return r.Outcome != nil && r.Outcome.Message > r.Stopped }

// bytesOf is how long items are in a section.
func bytesOf(items []string) (n int) {
	for _, s := range items {
		n += len(s) + 1
	}
	return n
}

// fitting leaves out the items for which there is no room.
func fitting(items []string, room int) (out []string) {
	for _, s := range items {
		if len(s) < room {
			out, room = append(out, s), room-len(s)-1
		}
	}
	return out
}

// stoppedEarlier begins the list of those that are not quoted.
const stoppedEarlier = "- stopped earlier: requests"

func failure(e *abi.LedgerError) string {
	out := "- failed at " + at(e.Message) + ", not seen to pass since: `" + line(e.Key, 160) + "`"
	if e.Line != "" {
		out += "\n  → " + quoteCut(e.Line, 0, 200)
	}
	if len(e.Edits) > 0 {
		out += "\n  → changed since: " + baseNames(e.Edits, 4)
	}
	return out
}

func numbered(id string) string {
	if id == "" {
		return ""
	}
	return "#" + line(id, 40) + " "
}

// baseNames lists files by their last element.
func baseNames(list []string, n int) string {
	var b strings.Builder
	for i, f := range list {
		if i == n && len(list) > n+1 {
			b.WriteString(" and " + strconv.Itoa(len(list)-i) + " more")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(line(base(f), 80))
	}
	return b.String()
}
