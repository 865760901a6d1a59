package ledger

import (
	"cmp"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// file returns the entry of a path; a relative one may be that of a known file.
func (l *Ledger) file(p string) *abi.LedgerFile {
	if i, ok := l.files[p]; ok {
		return &l.s.Work.Files[i]
	}
	if i, ok := l.bases[base(p)]; ok {
		known := l.s.Work.Files[i].Path
		if !strings.HasPrefix(p, "/") && strings.HasPrefix(known, "/") && strings.HasSuffix(known, "/"+p) {
			return &l.s.Work.Files[i]
		}
	}
	if len(l.s.Work.Files) >= maxFiles {
		l.dropFiles()
	}
	l.s.Work.Files = append(l.s.Work.Files, abi.LedgerFile{Path: strings.Clone(p)})
	i := len(l.s.Work.Files) - 1
	l.files[l.s.Work.Files[i].Path], l.bases[base(p)] = i, i
	return &l.s.Work.Files[i]
}

// dropFiles forgets a quarter of the files: those that were only read first, then the oldest.
func (l *Ledger) dropFiles() {
	list := l.s.Work.Files
	order := make([]int, len(list))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(min(list[a].Changed, 1), min(list[b].Changed, 1)), cmp.Compare(max(list[a].Read, list[a].Changed), max(list[b].Read, list[b].Changed)))
	})
	drop := make([]bool, len(list))
	for _, i := range order[:len(list)/4] {
		drop[i] = true
	}
	at := -1
	l.s.Work.Files = slices.DeleteFunc(list, func(abi.LedgerFile) bool { at++; return drop[at] })
	l.index()
}

// changed notes that a call changed a file.
func (l *Ledger) changed(c *abi.LedgerCall, p, verb string, created bool) {
	f := l.file(p)
	if created && f.Changes == 0 && f.Reads == 0 {
		f.Created = c.Message
	}
	f.Changed = c.Message
	f.Changes++
	f.Verb, f.State, f.At = verb, "", 0
	names := slices.Clone(c.Names)
	for _, n := range f.Names {
		if len(names) < maxDefined && !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	f.Names = names
	l.touched(f.Path)
}

// touched notes a changed file at the current request and at open errors.
func (l *Ledger) touched(p string) {
	if r := l.current(); r != nil && len(r.Files) < maxPaths && !slices.Contains(r.Files, p) {
		r.Files = append(r.Files, p)
	}
	for i := range l.s.Work.Errors {
		if e := &l.s.Work.Errors[i]; e.Passed == 0 && len(e.Edits) < 6 && !slices.Contains(e.Edits, p) {
			e.Edits = append(e.Edits, p)
		}
	}
}

// gone notes that a file was deleted or restored.
func (l *Ledger) gone(c *abi.LedgerCall, p, verb, state string) {
	f := l.file(p)
	f.Changed = c.Message
	f.Changes++
	f.Verb, f.State, f.At = verb, state, c.Message
}
