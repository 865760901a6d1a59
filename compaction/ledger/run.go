package ledger

import (
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// shell reads the output of a command.
func (l *Ledger) shell(n int, c *abi.LedgerCall, text string, marked bool) {
	parts := parse(c.Text)
	if len(parts) == 0 {
		return
	}
	if strings.HasPrefix(text, "<tool_use_error>") || strings.HasPrefix(text, "[no result was recorded]") { // it did not run
		l.became(c, "did not run")
		return
	}
	outcome, line := l.outcome(c, parts, text, marked)
	l.shellChanges(c, parts, outcome, text)
	l.versionControl(c, parts, text)
	key := keyOf(parts)
	check := l.isCheck(key)
	switch {
	case outcome == abi.CommandFailed && line != "":
		l.became(c, outcome+": "+quote(line))
	case outcome == abi.CommandFailed || check:
		l.became(c, outcome)
	}
	if key == "" {
		return
	}
	l.command(c, key, outcome, line, check)
	switch outcome {
	case abi.CommandFailed:
		l.failed(n, key, line, check)
	case abi.CommandOK:
		l.passed(n, key)
		l.partsPassed(c, key)
	}
}

// partsPassed notes the success of a chain at its parts, where they ran alone before.
func (l *Ledger) partsPassed(c *abi.LedgerCall, key string) {
	if !strings.Contains(key, " && ") {
		return
	}
	for part := range strings.SplitSeq(key, " && ") {
		if i, ok := l.commands[part]; ok {
			k := &l.s.Work.Commands[i]
			k.Message, k.Outcome, k.Line = c.Message, abi.CommandOK, ""
		}
	}
}

// command notes the latest run.
func (l *Ledger) command(c *abi.LedgerCall, key, outcome, line string, check bool) {
	i, ok := l.commands[key]
	if !ok {
		if len(l.s.Work.Commands) >= maxCommands {
			l.dropCommands()
		}
		i = len(l.s.Work.Commands)
		key = strings.Clone(key)
		l.commands[key] = i
		l.s.Work.Commands = append(l.s.Work.Commands, abi.LedgerCommand{Key: key, Check: check, Reads: readsOnly(key)})
	}
	k := &l.s.Work.Commands[i]
	k.Text, k.Message, k.Outcome, k.Line = clip(firstLine(c.Text), maxKey), c.Message, outcome, line
	k.Runs++
}

// dropCommands forgets the older half of the commands that ran once.
func (l *Ledger) dropCommands() {
	list := l.s.Work.Commands
	times := make([]int, len(list))
	for i := range list {
		times[i] = list[i].Message
	}
	slices.Sort(times)
	middle := times[len(times)/2]
	kept := slices.DeleteFunc(slices.Clone(list), func(c abi.LedgerCommand) bool { return c.Runs == 1 && c.Message < middle })
	if len(kept) > maxCommands*3/4 {
		kept = kept[len(kept)-maxCommands*3/4:]
	}
	l.s.Work.Commands = kept
	l.index()
}

func (l *Ledger) failed(n int, key, line string, check bool) {
	list := &l.s.Work.Errors
	runs := 1
	*list = slices.DeleteFunc(*list, func(e abi.LedgerError) bool {
		if e.Key == key && e.Passed == 0 {
			runs = e.Runs + 1
			return true
		}
		return false
	})
	*list = appendBounded(*list, abi.LedgerError{Message: n, Key: strings.Clone(key), Line: line, Check: check, Runs: runs}, maxErrors)
}

// shellChanges notes the files that a command wrote, moved or deleted. Of a failed chain the
// last part counts as not done, and a part that complains itself.
func (l *Ledger) shellChanges(c *abi.LedgerCall, parts []part, outcome, text string) {
	list, last := changesOf(parts)
	for i, f := range list {
		verb, _, _ := strings.Cut(f.verb, " ")
		if outcome == abi.CommandFailed && (last[i] || strings.Contains(text, verb+": ") || strings.Contains(text, "fatal: ") || strings.Contains(text, "error: pathspec")) {
			continue
		}
		p := l.resolve(f.path)
		switch {
		case f.gone:
			if l.known(p) || looksLikeFile(p) {
				l.gone(c, p, f.verb, abi.FileDeleted)
			}
			l.goneBelow(c, p, f.verb)
		case f.back:
			if l.known(p) {
				l.gone(c, p, f.verb, abi.FileRestored)
			}
			l.restoredBelow(c, p, f.verb)
		default:
			l.changed(c, p, f.verb, false)
		}
	}
}

func (l *Ledger) known(p string) bool {
	_, ok := l.files[p]
	return ok
}

func looksLikeFile(p string) bool {
	b := base(p)
	return strings.LastIndexByte(b, '.') > 0
}

// goneBelow notes the known files of a folder that was deleted.
func (l *Ledger) goneBelow(c *abi.LedgerCall, dir, verb string) {
	l.below(c, dir, verb, abi.FileDeleted)
}

func (l *Ledger) restoredBelow(c *abi.LedgerCall, dir, verb string) {
	l.below(c, dir, verb, abi.FileRestored)
}

func (l *Ledger) below(c *abi.LedgerCall, dir, verb, state string) {
	if looksLikeFile(dir) {
		return
	}
	prefix := strings.TrimSuffix(dir, "/") + "/"
	for i := range l.s.Work.Files {
		if f := &l.s.Work.Files[i]; f.Changes > 0 && strings.HasPrefix(f.Path, prefix) {
			l.gone(c, f.Path, verb, state)
		}
	}
}

// resolve makes a path of the shell that of a known file, or one below the working directory.
func (l *Ledger) resolve(p string) string {
	if strings.HasPrefix(p, "/") || strings.HasPrefix(p, "~") {
		return p
	}
	if i, ok := l.bases[base(p)]; ok {
		known := l.s.Work.Files[i].Path
		if strings.HasSuffix(known, "/"+p) {
			return known
		}
	}
	if l.s.Folder != "" {
		return join(l.s.Folder, p)
	}
	return p
}
