package talk

import "strings"

// alarms mark the lines of an output that report what went wrong, and results.
func alarms() []string {
	return []string{"error", "fail", "panic", "fatal", "exception", "traceback", "denied", "not found", "cannot", "undefined", "warning", "returncode", "exit code", "exit status"}
}

// maxNotable bounds how much of an output is looked at, in bytes, from its head.
const maxNotable = 256 << 10

// Notable returns the lines of an output that tell most: those that report what went wrong,
// then the first and the last ones, each once, in at most n bytes and in their order, joined by
// " / ".
func Notable(s string, n int) string {
	p := &picked{lines: strings.Split(strings.TrimSpace(Cut(s, maxNotable)), "\n"), room: n, seen: map[string]bool{"": true}}
	p.taken = make([]string, len(p.lines))
	marks := alarms()
	for i, l := range p.lines {
		if p.room < n/2 {
			break
		}
		if containsAny(strings.ToLower(Cut(l, lineMax)), marks) {
			p.take(i)
		}
	}
	for i := 0; i < len(p.lines) && p.room >= leastLine; i++ {
		p.take(i)
		p.take(len(p.lines) - 1 - i)
	}
	return Cut(p.join(), n)
}

const (
	separator = " / "
	lineMax   = 200
	leastLine = 12
)

// picked are the lines that are taken while there is room.
type picked struct {
	lines, taken []string
	seen         map[string]bool
	room         int
}

func (p *picked) take(i int) {
	if p.room < leastLine || p.taken[i] != "" {
		return
	}
	line := Line(p.lines[i], min(lineMax, p.room))
	if p.seen[line] {
		return
	}
	p.seen[line], p.taken[i] = true, line
	p.room -= len(line) + len(separator)
}

func (p *picked) join() string {
	var out []byte
	for _, t := range p.taken {
		if t == "" {
			continue
		}
		if len(out) > 0 {
			out = append(out, separator...)
		}
		out = append(out, t...)
	}
	return string(out)
}

func containsAny(s string, words []string) bool {
	for _, w := range words {
		if strings.Contains(s, w) {
			return true
		}
	}
	return false
}
