package ledger

import "strings"

// closing is where a quotation ends.
func closing(s string, quote byte) int {
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case quote:
			return i
		case '\\':
			if quote == '"' {
				i++
			}
		}
	}
	return len(s)
}

// withoutHeredocs removes the bodies of here-documents, and returns the first of them.
func withoutHeredocs(cmd string) (string, string) {
	if !strings.Contains(cmd, "<<") {
		return cmd, ""
	}
	var out strings.Builder
	first, end := "", ""
	from := -1
	for at := 0; at < len(cmd); {
		line, next := lineAt(cmd, at)
		switch {
		case end == "":
			if end = heredocEnd(line); end != "" {
				from = next
			}
			out.WriteString(line + "\n")
		case strings.TrimSpace(line) == end:
			if first == "" {
				first = cmd[from:at]
			}
			end = ""
		}
		at = next
	}
	if end != "" && first == "" && from <= len(cmd) {
		first = cmd[from:]
	}
	return out.String(), first
}

// lineAt returns a line without its end, and where the next one begins.
func lineAt(s string, at int) (string, int) {
	if n := strings.IndexByte(s[at:], '\n'); n >= 0 {
		return s[at : at+n], at + n + 1
	}
	return s[at:], len(s)
}

// heredocEnd is the word that ends the here-document which begins in a line.
func heredocEnd(line string) string {
	_, rest, ok := strings.Cut(line, "<<")
	if !ok || strings.HasPrefix(rest, "<") {
		return ""
	}
	rest = strings.TrimLeft(rest, "- \t")
	if rest == "" {
		return ""
	}
	if q := rest[0]; q == '\'' || q == '"' {
		return rest[1 : 1+closing(rest[1:], q)]
	}
	return rest[:nameEnd(rest)]
}
