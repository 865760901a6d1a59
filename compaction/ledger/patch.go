package ledger

import (
	"slices"
	"strings"
)

// patchFiles returns the files that a patch in the form of apply_patch, or a unified diff,
// changes.
func patchFiles(text string) []change {
	var out []change
	add := func(name, verb string, gone bool) {
		name = strings.TrimSpace(name)
		if name != "" && name != "/dev/null" && len(name) <= maxPath && len(out) < maxPaths {
			out = append(out, change{path: name, verb: verb, gone: gone})
		}
	}
	from := ""
	for at := 0; at < len(text); {
		line, next := lineAt(text, at)
		at = next
		switch {
		case strings.HasPrefix(line, "*** Update File:"):
			add(line[len("*** Update File:"):], "patch", false)
		case strings.HasPrefix(line, "*** Add File:"):
			add(line[len("*** Add File:"):], "created", false)
		case strings.HasPrefix(line, "*** Delete File:"):
			add(line[len("*** Delete File:"):], "patch", true)
		case strings.HasPrefix(line, "*** Move to:"):
			if n := len(out); n > 0 {
				out[n-1].gone = true
			}
			add(line[len("*** Move to:"):], "patch", false)
		case strings.HasPrefix(line, "--- "):
			from = diffName(line[4:])
		case strings.HasPrefix(line, "+++ ") && from != "":
			to := diffName(line[4:])
			switch {
			case to == "/dev/null":
				add(from, "patch", true)
			case from == "/dev/null":
				add(to, "created", false)
			default:
				add(to, "patch", false)
			}
			from = ""
		}
	}
	return out
}

func diffName(s string) string {
	s, _, _ = strings.Cut(strings.TrimSpace(s), "\t")
	if strings.HasPrefix(s, "a/") || strings.HasPrefix(s, "b/") {
		return s[2:]
	}
	return s
}

// definedNames returns the names that a text defines, each once.
func definedNames(text string, out []string) []string {
	if len(text) > maxRead {
		text = text[:maxRead]
	}
	for at := 0; at < len(text) && len(out) < maxDefined; {
		line, next := lineAt(text, at)
		at = next
		if name := definition(strings.TrimLeft(line, " \t+-")); name != "" && !slices.Contains(out, name) {
			out = append(out, strings.Clone(name))
		}
	}
	return out
}

// definition is the name that a line defines, in most languages.
func definition(line string) string {
	for _, skip := range []string{"export ", "default ", "public ", "private ", "protected ", "static ", "pub ", "async ", "abstract ", "final "} {
		line = strings.TrimPrefix(line, skip)
	}
	for _, word := range []string{"func ", "def ", "class ", "type ", "const ", "fn ", "function ", "interface ", "struct ", "enum ", "trait "} {
		rest, ok := strings.CutPrefix(line, word)
		if !ok {
			continue
		}
		if word == "func " && strings.HasPrefix(rest, "(") { // the receiver of a method
			if _, after, ok := strings.Cut(rest, ")"); ok {
				rest = strings.TrimLeft(after, " ")
			}
		}
		if n := nameEnd(rest); n >= 3 && n <= 80 {
			return rest[:n]
		}
	}
	return ""
}

// nameEnd is where the name at the beginning of a text ends.
func nameEnd(s string) int {
	n := 0
	for n < len(s) && (s[n] == '_' || s[n] >= '0' && s[n] <= '9' || s[n] >= 'A' && s[n] <= 'Z' || s[n] >= 'a' && s[n] <= 'z') {
		n++
	}
	return n
}
