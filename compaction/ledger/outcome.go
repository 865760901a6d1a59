package ledger

import (
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// sign is a word in a line of output, and how much it shows.
type sign struct {
	text   string
	weight int
}

// Failure lines by their beginning, and by what they hold. Weight 3 names the place or the test,
// 2 the reason, 1 only that something failed.
func failStarts() []sign {
	return []sign{
		{"--- FAIL", 3},
		{"panic:", 3},
		{"fatal:", 3},
		{"FAIL\t", 2},
		{"FAILED ", 3},
		{"error[", 3},
		{"error:", 2},
		{"Error:", 2},
		{"ERROR:", 2},
		{"E   ", 3},
		{"Traceback (most recent call last)", 2},
		{"SyntaxError", 3},
		{"TypeError", 3},
		{"ReferenceError", 3},
		{"ImportError", 3},
		{"ModuleNotFoundError", 3},
		{"AssertionError", 3},
		{"make: ***", 1},
		{"npm ERR!", 1},
		{"FAIL", 1},
		{"exit status ", 1},
		{"BUILD FAILED", 1},
		{"Tests failed", 1},
	}
}

func failParts() []sign {
	return []sign{{"command not found", 3}, {": No such file or directory", 3}, {"undefined: ", 3}, {"cannot find ", 2}, {"build failed", 1}, {"task failed", 1}}
}

// reasons are words that make a line of a failed command worth quoting.
const reasons = "error expected want undefined missing cannot unexpected invalid denied not found failed"

// passes are what a line begins with that shows success.
func passStarts() []string {
	return []string{"ok  \t", "ok \t", "PASS", "--- PASS", "0 issues", "BUILD SUCCESS", "All checks passed", "Success: no issues", "All tests passed", "test result: ok"}
}

// reading is what the output of a command shows.
type reading struct {
	fails  bool
	passes bool
	// sums reports that the last line is that of a whole run which passed.
	sums  bool
	line  string // the most telling line of a failure
	last  string
	score int
}

// maxOutput is how much of an output is read for its outcome, from the head and from the tail.
const maxOutput = 64 << 10

// readOutput looks for lines that show success or failure. Of commands that check, a place in a
// file is a failure.
func (l *Ledger) readOutput(text string, check, failed bool) reading {
	var r reading
	if len(text) > 2*maxOutput {
		head := l.readOutput(text[:maxOutput], check, failed)
		r = l.readOutput(text[len(text)-maxOutput:], check, failed)
		r.fails, r.passes = r.fails || head.fails, r.passes || head.passes
		if head.score >= r.score {
			r.line, r.score = head.line, head.score
		}
		return r
	}
	for at := 0; at < len(text); {
		raw, next := lineAt(text, at)
		at = next
		line := strings.TrimSpace(raw)
		if line == "" {
			continue
		}
		r.last = line
		score, fails := l.failing(line, check)
		r.fails = r.fails || fails
		if score == 3 && !fails && !failed {
			score = 0
		}
		if score == 0 && failed && len(line) < 400 && hasReason(line) && !isStatusLine(line) {
			score = 1
		}
		if score > r.score {
			r.line, r.score = line, score
		}
		r.passes = r.passes || l.passing(line)
		r.sums = sumsUp(line)
	}
	return r
}

func hasReason(line string) bool {
	low := strings.ToLower(line)
	for w := range strings.FieldsSeq(reasons) {
		if strings.Contains(low, w) {
			return true
		}
	}
	return false
}

// failing scores a line: 4 is a place, a test or a panic, 1 a bare word.
func (l *Ledger) failing(line string, check bool) (score int, fails bool) {
	if isStatusLine(line) {
		return 0, false
	}
	for _, s := range l.failStarts {
		if strings.HasPrefix(line, s.text) {
			return s.weight + 1, true
		}
	}
	switch place(line) {
	case 3:
		if check {
			return 4, true
		}
	case 2:
		return 3, false
	}
	for _, s := range l.failParts {
		if strings.Contains(line, s.text) {
			return s.weight + 1, check || s.weight == 3 && strings.Contains(s.text, "command not")
		}
	}
	return 0, false
}

// sumsUp reports the line with which a program ends that found nothing.
func sumsUp(line string) bool {
	return startsWith(line, []string{"0 issues", "All checks passed", "Success: no issues", "All tests passed", "test result: ok"})
}

func (l *Ledger) passing(line string) bool {
	for _, s := range l.passStarts {
		if strings.HasPrefix(line, s) {
			return true
		}
	}
	// "12 passed in 0.4s", "Tests: 12 passed"
	i := strings.Index(line, " passed")
	return i > 0 && line[i-1] >= '0' && line[i-1] <= '9' && !strings.Contains(line, " failed")
}

// isStatusLine reports a line that only gives the exit code.
func isStatusLine(line string) bool {
	return len(line) < 32 && (strings.HasPrefix(line, "Exit code") || strings.HasPrefix(line, "exit code") || strings.HasPrefix(line, "Error: Exit code") || strings.HasPrefix(line, "Command exited with code"))
}

// place is 3 for a line that begins with file:line:column:, 2 for one with file:line:, which a log of
// a test that passes also has, and else 0.
func place(line string) int {
	i := strings.IndexByte(line, ':')
	if i < 3 || i > 200 || strings.IndexByte(line[:i], '.') < 0 || strings.ContainsAny(line[:i], " \t\"'=(") {
		return 0
	}
	j := digits(line, i+1)
	if j == i+1 || j+1 >= len(line) || line[j] != ':' {
		return 0
	}
	if k := digits(line, j+1); k > j+1 && k < len(line) && line[k] == ':' {
		return 3
	}
	if line[j+1] == ' ' {
		return 2
	}
	return 0
}

// digits is where the digits that begin at i end.
func digits(s string, i int) int {
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	return i
}

// exitCode finds the exit code that an agent wrote into a result; ok is false when there is none.
func exitCode(text string) (code int, ok bool) {
	head, tail := text[:min(len(text), 240)], text[max(0, len(text)-240):]
	for _, s := range []string{head, tail} {
		low := strings.ToLower(s)
		for _, mark := range []string{"exit code", "exit_code\"", "exited with code", "returncode>", "exit status", "exited with status"} {
			_, rest, ok := strings.Cut(low, mark)
			if !ok {
				continue
			}
			rest = strings.TrimLeft(rest, ": \t")
			n := min(digits(rest, 0), 4)
			if code, err := strconv.Atoi(rest[:n]); err == nil {
				return code, true
			}
		}
	}
	return 0, false
}

// outcome decides what a command came to, and which line shows it.
func (l *Ledger) outcome(c *abi.LedgerCall, parts []part, text string, marked bool) (string, string) {
	key := keyOf(parts)
	check, reads := l.isCheck(key), onlyReads(parts)
	code, coded := exitCode(text)
	failed := marked || coded && code != 0
	r := l.readOutput(text, check, failed)
	switch {
	case failed:
		if r.line == "" {
			r.line = r.last
		}
		if isStatusLine(r.line) {
			r.line = ""
		}
		return abi.CommandFailed, clip(r.line, maxLine)
	case r.fails && !reads && (check || hidden(parts)):
		return abi.CommandFailed, clip(r.line, maxLine)
	case r.fails && !reads:
		return abi.CommandEnded, clip(r.last, maxLine)
	case r.passes && (check || !reads) && (showsEnd(parts) || r.sums && !r.fails):
		return abi.CommandOK, ""
	case !hidden(parts) && (coded || strings.Contains(flagged, " "+strings.ToLower(c.Tool)+" ")):
		return abi.CommandOK, ""
	}
	return abi.CommandEnded, clip(r.last, maxLine)
}
