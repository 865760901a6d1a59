package ledger

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// versionControl finds commits and the branch in the output of a command.
func (l *Ledger) versionControl(c *abi.LedgerCall, parts []part, text string) {
	if !usesGit(parts) {
		return
	}
	for at, lines := 0, 0; at < len(text) && lines < 200; lines++ {
		line, next := lineAt(text, at)
		at = next
		switch {
		case strings.HasPrefix(line, "["):
			l.commit(c, line)
		case strings.HasPrefix(line, "On branch "):
			l.s.Branch = clip(strings.TrimSpace(line[len("On branch "):]), maxLine)
		case strings.HasPrefix(line, "Switched to "):
			if _, name, ok := strings.Cut(line, "'"); ok {
				l.s.Branch = clip(strings.TrimSuffix(strings.TrimSpace(name), "'"), maxLine)
			}
		}
	}
}

func usesGit(parts []part) bool {
	for i := range parts {
		if w := plain(parts[i].words); len(w) > 1 && w[0].text == "git" {
			return true
		}
	}
	return false
}

// commit reads "[branch hash] message".
func (l *Ledger) commit(c *abi.LedgerCall, line string) {
	inside, text, ok := strings.Cut(line[1:], "] ")
	if !ok {
		return
	}
	i := strings.LastIndexByte(inside, ' ')
	if i < 1 {
		return
	}
	branch, hash := strings.TrimSuffix(inside[:i], " (root-commit)"), inside[i+1:]
	if len(hash) < 7 || len(hash) > 40 || strings.Trim(hash, "0123456789abcdef") != "" || strings.Contains(branch, " ") && !strings.HasPrefix(branch, "detached") {
		return
	}
	l.s.Work.Commits = appendBounded(l.s.Work.Commits, abi.LedgerCommit{
		Message: c.Message, Hash: strings.Clone(hash), Branch: clip(branch, maxLine), Text: clip(text, maxLine),
	}, maxCommits)
	if !strings.HasPrefix(branch, "detached") {
		l.s.Branch = clip(branch, maxLine)
	}
	if r := l.current(); r != nil && len(r.Commits) < maxPaths {
		r.Commits = append(r.Commits, strings.Clone(hash))
	}
}
