package track

import (
	"slices"
	"strings"
)

const (
	scanBytes = 16 << 10
	maxFound  = 40
	maxLine   = 200
)

// Found is what a text mentions, each list bounded.
type Found struct {
	Identifiers, URLs, Errors, Modified []string
	// Exit is the exit status that the text shows, when HasExit.
	Exit    int64
	HasExit bool
}

// Text reads the head and the tail of a result or an argument.
func Text(s string) Found {
	if len(s) > 2*scanBytes {
		s = s[:scanBytes] + "\n" + s[len(s)-scanBytes:]
	}
	var f Found
	h := look(s)
	for line := range strings.SplitSeq(s, "\n") {
		f.line(strings.TrimRight(line, "\r"), h)
	}
	return f
}

// hints is what a text has somewhere. Lines are searched only for what the text has: a guest pays for each search that
// it begins.
type hints struct{ urls, failed, exit bool }

func look(s string) hints {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(s, w) })
	}
	return hints{
		urls:   has("http"),
		failed: has("Error: ", ": error: ", "command not found", "No such file or directory"),
		exit:   has("exit", "Exit", "EXIT", "returncode", "RETURNCODE"),
	}
}

func (f *Found) line(line string, h hints) {
	if p, ok := patchTarget(line); ok && Path(p) {
		f.Modified = put(f.Modified, p)
	}
	t := line
	for t != "" && strings.IndexByte("+- \t0123456789:|", t[0]) >= 0 {
		t = t[1:]
	}
	if id := declared(t); id != "" {
		f.Identifiers = put(f.Identifiers, id)
	}
	// A hunk header names the function: @@ -1,2 +1,3 @@ func F()
	if strings.HasPrefix(line, "@@") {
		_, rest, _ := strings.Cut(line, "@@ ")
		if _, head, ok := strings.Cut(rest, "@@ "); ok {
			f.Identifiers = put(f.Identifiers, declared(strings.TrimSpace(head)))
		}
	}
	if h.urls {
		f.urls(line)
	}
	if failed(t, h.failed) {
		f.Errors = put(f.Errors, cut(t))
	}
	if h.exit {
		f.exit(strings.ToLower(cut(t)))
	}
}

func put(list []string, s string) []string {
	if s == "" || len(list) >= maxFound {
		return list
	}
	for _, e := range list {
		if e == s {
			return list
		}
	}
	return append(list, strings.Clone(s))
}

func cut(s string) string {
	if len(s) > maxLine {
		return strings.ToValidUTF8(s[:maxLine], "")
	}
	return s
}

// patchTarget is the file of a patch header.
func patchTarget(line string) (string, bool) {
	if line == "" || line[0] != '+' && line[0] != '*' {
		return "", false
	}
	for _, p := range []string{"+++ b/", "*** Update File: ", "*** Add File: ", "*** Delete File: "} {
		if rest, ok := strings.CutPrefix(line, p); ok {
			return strings.TrimSpace(rest), true
		}
	}
	return "", false
}

// declared is the name that a line of source declares, or "".
func declared(s string) string {
	for range 4 {
		word, rest, ok := strings.Cut(s, " ")
		if !ok {
			return ""
		}
		rest = strings.TrimLeft(rest, " ")
		switch word {
		case "func":
			if strings.HasPrefix(rest, "(") {
				_, rest, _ = strings.Cut(rest, ") ")
			}
			return name(rest)
		case "def", "class", "fn", "struct", "enum", "trait", "interface", "type", "function":
			return name(rest)
		case "export", "public", "private", "protected", "static", "async", "pub", "default", "abstract", "final", "pub(crate)":
			s = rest
		default:
			return ""
		}
	}
	return ""
}

func name(s string) string {
	i := 0
	for i < len(s) && i < 80 && (s[i] == '_' || s[i] >= 'a' && s[i] <= 'z' || s[i] >= 'A' && s[i] <= 'Z' || i > 0 && s[i] >= '0' && s[i] <= '9') {
		i++
	}
	if i < 3 || i < len(s) && strings.IndexByte(" (:{<[;=", s[i]) < 0 {
		return ""
	}
	return s[:i]
}

func (f *Found) urls(line string) {
	for len(f.URLs) < maxFound {
		i := strings.Index(line, "http")
		if i < 0 {
			return
		}
		u := line[i:]
		if !strings.HasPrefix(u, "http://") && !strings.HasPrefix(u, "https://") {
			line = line[i+4:]
			continue
		}
		end := strings.IndexAny(u, " \t\"'<>`)]}\\,")
		if end < 0 {
			end = len(u)
		}
		if u = strings.TrimRight(u[:end], ".;:"); len(u) > 11 && len(u) <= 300 && !strings.Contains(u, "@") {
			f.URLs = put(f.URLs, u)
		}
		line = line[i+end:]
	}
}

// failed reports the lines of errors; within is whether words of an error may stand behind the beginning of the line.
func failed(s string, within bool) bool {
	if len(s) < 6 || len(s) > 2000 || !within && strings.IndexByte("eEFpfT", s[0]) < 0 {
		return false
	}
	for _, p := range []string{"error:", "Error:", "ERROR", "FAIL", "panic:", "fatal:", "error[", "Traceback"} {
		if strings.HasPrefix(s, p) {
			return true
		}
	}
	if !within {
		return false
	}
	head := cut(s)
	return strings.Contains(head, "Error: ") || strings.Contains(head, ": error: ") || strings.Contains(head, "command not found") || strings.Contains(head, "No such file or directory")
}

// exit reads "exit code 1", "exit status 1", "<returncode>1</returncode>".
func (f *Found) exit(s string) {
	for _, p := range []string{"exit code: ", "exit code ", "exit status ", "exited with code ", "<returncode>", "returncode: "} {
		_, rest, ok := strings.Cut(s, p)
		if !ok || rest == "" || rest[0] < '0' || rest[0] > '9' {
			continue
		}
		n := int64(0)
		for i := 0; i < len(rest) && i < 4 && rest[i] >= '0' && rest[i] <= '9'; i++ {
			n = n*10 + int64(rest[i]-'0')
		}
		f.Exit, f.HasExit = n, true
		return
	}
}
