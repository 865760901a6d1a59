package talk

import "strings"

// alarms mark the lines of an output that say what went wrong, and results.
func alarms() []string {
	return []string{"error", "fail", "panic", "fatal", "exception", "traceback", "denied", "not found", "cannot", "undefined", "warning", "returncode", "exit code", "exit status"}
}

// maxNotable bounds how much of an output is looked at, in bytes, from its head.
const maxNotable = 256 << 10

// Notable returns the lines of an output that tell most: those that say what went wrong,
// then the first and the last ones, each once, in at most n bytes and in their order, joined by " / ".
func Notable(s string, n int) string {
	lines := strings.Split(strings.TrimSpace(Cut(s, maxNotable)), "\n")
	taken := make([]string, len(lines))
	room := n
	const sep, lineMax, least = " / ", 200, 12
	seen := map[string]bool{"": true}
	take := func(i int) {
		if room < least || taken[i] != "" {
			return
		}
		if line := Line(lines[i], min(lineMax, room)); !seen[line] {
			seen[line], taken[i] = true, line
			room -= len(line) + len(sep)
		}
	}
	marks := alarms()
	for i, l := range lines {
		if room < n/2 {
			break
		}
		low := strings.ToLower(Cut(l, lineMax))
		for _, m := range marks {
			if strings.Contains(low, m) {
				take(i)
				break
			}
		}
	}
	for i := range lines {
		take(i)
		take(len(lines) - 1 - i)
		if room < least {
			break
		}
	}
	var out []byte
	for _, t := range taken {
		if t == "" {
			continue
		}
		if len(out) > 0 {
			out = append(out, sep...)
		}
		out = append(out, t...)
	}
	return Cut(string(out), n)
}
