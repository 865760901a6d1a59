package ledger

import (
	"path"
	"strings"
)

// change is what a command does to a file.
type change struct {
	path string
	verb string
	gone bool // deleted
	back bool // restored to what version control has
}

// changesOf returns the files that a command writes, moves or deletes. Last reports for each
// whether its part is the last one of the command.
func changesOf(parts []part) (list []change, last []bool) {
	dir := ""
	for i := range parts {
		p := &parts[i]
		words := plain(p.words)
		if len(words) > 1 && words[0].text == "cd" {
			dir = join(dir, words[1].text)
			continue
		}
		n := len(list)
		for _, w := range p.writes {
			list = appendChange(list, dir, w.text, change{verb: "written by the shell"})
		}
		if len(words) > 1 {
			list = partChanges(list, dir, words)
		}
		for range len(list) - n {
			last = append(last, i == len(parts)-1)
		}
	}
	return list, last
}

// plain leaves out what precedes the name of a command.
func plain(words []word) []word {
	for len(words) > 0 {
		w := words[0]
		if strings.HasPrefix(w.text, "-") || w.text == "sudo" || w.text == "time" || w.text == "env" || w.text == "command" || w.text == "exec" ||
			!w.quoted && strings.IndexByte(w.text, '=') > 0 {
			words = words[1:]
			continue
		}
		break
	}
	if len(words) > 3 && words[0].text == "git" && words[1].text == "-C" {
		return append([]word{words[0]}, words[3:]...)
	}
	return words
}

func partChanges(list []change, dir string, words []word) []change {
	name, args := path.Base(words[0].text), words[1:]
	switch name {
	case "tee", "touch":
		return appendAll(list, dir, operands(args), change{verb: name})
	case "sed", "perl":
		return appendAll(list, dir, inPlace(args), change{verb: name + " -i"})
	case "gofmt", "gofumpt", "goimports", "prettier", "black", "rustfmt":
		if name == "black" || name == "rustfmt" || has(args, "-w") || has(args, "--write") {
			return appendAll(list, dir, operands(args), change{verb: name})
		}
	case "rm", "unlink":
		return appendAll(list, dir, operands(args), change{verb: "rm", gone: true})
	case "mv", "cp":
		return moved(list, dir, operands(args), name)
	case "git":
		return gitChanges(list, dir, args)
	}
	return list
}

func gitChanges(list []change, dir string, args []word) []change {
	switch rest := operands(args[1:]); args[0].text {
	case "rm":
		if !has(args, "--cached") {
			return appendAll(list, dir, rest, change{verb: "git rm", gone: true})
		}
	case "mv":
		return moved(list, dir, rest, "git mv")
	case "restore":
		if !has(args, "--staged") || has(args, "--worktree") {
			return appendAll(list, dir, rest, change{verb: "git restore", back: true})
		}
	case "checkout":
		for i, w := range args {
			if w.text == "--" {
				return appendAll(list, dir, operands(args[i+1:]), change{verb: "git checkout", back: true})
			}
		}
	}
	return list
}

func moved(list []change, dir string, args []word, verb string) []change {
	if len(args) != 2 {
		return list
	}
	from, to := args[0].text, args[1].text
	if strings.HasSuffix(to, "/") || path.Ext(to) == "" && path.Ext(from) != "" {
		to = join(to, path.Base(from))
	}
	if verb != "cp" {
		list = appendChange(list, dir, from, change{verb: verb, gone: true})
	}
	return appendChange(list, dir, to, change{verb: verb})
}

// operands are the words that are no flags.
func operands(args []word) []word {
	var out []word
	for _, w := range args {
		if !strings.HasPrefix(w.text, "-") || w.quoted {
			out = append(out, w)
		}
	}
	return out
}

func has(args []word, flag string) bool {
	for _, w := range args {
		if w.text == flag {
			return true
		}
	}
	return false
}

// inPlace returns the files of sed -i and perl -i.
func inPlace(args []word) []word {
	in, script := false, false
	var files []word
	for i := 0; i < len(args); i++ {
		w := args[i]
		switch {
		case strings.HasPrefix(w.text, "-i") || strings.HasPrefix(w.text, "--in-place") ||
			strings.HasPrefix(w.text, "-") && len(w.text) < 6 && strings.Contains(w.text, "i") && !strings.HasPrefix(w.text, "--"):
			in = true
			if strings.HasSuffix(w.text, "e") && len(w.text) > 2 {
				script, i = true, i+1
			}
			if i+1 < len(args) && args[i+1].quoted && args[i+1].text == "" { // -i '' of BSD
				i++
			}
		case w.text == "-e" || w.text == "-f":
			script, i = true, i+1
		case strings.HasPrefix(w.text, "-") && !w.quoted:
		case !script:
			script = true
		default:
			files = append(files, w)
		}
	}
	if !in {
		return nil
	}
	return files
}

func appendAll(list []change, dir string, words []word, c change) []change {
	for _, w := range words {
		list = appendChange(list, dir, w.text, c)
	}
	return list
}

// appendChange adds a change if the word names a file that is worth a note.
func appendChange(list []change, dir, name string, c change) []change {
	if !plausible(name) || len(list) >= maxPaths {
		return list
	}
	c.path = join(dir, name)
	if temporary(c.path) {
		return list
	}
	return append(list, c)
}

// plausible reports a word that can be the name of a file.
func plausible(name string) bool {
	if name == "" || len(name) > maxPath || strings.ContainsAny(name, "*?[]{}$`<>|;&\"'\n\x00 =,") || name == "." || name == ".." || name[0] == '-' {
		return false
	}
	base := path.Base(name)
	return strings.ContainsAny(base, ".") && base != "." && base != ".." || strings.ContainsAny(name, "/") || isUpperName(base)
}

// isUpperName reports names such as Makefile, which have no extension.
func isUpperName(s string) bool { return s != "" && s[0] >= 'A' && s[0] <= 'Z' }

// temporary reports files that no later step needs.
func temporary(p string) bool {
	for _, dir := range []string{"/dev/", "/tmp/", "/private/tmp/", "/var/folders/", "/var/tmp/", "/proc/"} {
		if strings.HasPrefix(p, dir) {
			return true
		}
	}
	return p == "/tmp" || strings.HasPrefix(p, "~/.cache/")
}

// join is a path below a directory.
func join(dir, name string) string {
	name = strings.TrimPrefix(name, "./")
	if dir == "" || strings.HasPrefix(name, "/") || strings.HasPrefix(name, "~") {
		return name
	}
	return path.Join(dir, name)
}
