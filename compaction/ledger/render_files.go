package ledger

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// perFile is how many names stand behind a file.
const perFile = 14

// nameSize is about how many bytes of a page a name takes, with what stands around names.
const nameSize = 24

// files lists the changed files, all of them if they fit, then those that were only read.
func (p *page) files() {
	changed, read := p.splitFiles()
	limit := len(p.b) + int(p.share.files*float64(p.limit))
	limit = min(limit, p.limit)
	p.share.files = 0
	if len(changed)+len(read) == 0 {
		return
	}
	mark := len(p.b)
	p.b = append(p.b, "\n## "+secFiles+"\n"...)
	empty := len(p.b)
	lines, bare := make([]string, 0, len(changed)), 0
	for _, f := range changed {
		lines = append(lines, fileLine(f))
		bare += len(lines[len(lines)-1]) + 1
	}
	if p.share.small || bare > p.limit*2/5 {
		p.grouped(changed, mark)
		lines, changed = lines[:0], nil
		bare = 0
	}
	for _, f := range read {
		if item := "- read " + clean(f.Path) + " (" + at(f.Read) + ")"; len(p.b)+bare+len(item)+1 <= limit {
			lines, changed = append(lines, item), append(changed, f)
			bare += len(item) + 1
		}
	}
	room := max(limit, len(p.b)+p.limit*45/100) - len(p.b) - bare
	var behind map[string][]string
	if !p.share.small {
		behind = p.homes(changed)
	}
	for i, item := range lines {
		if behind != nil {
			if names := p.namesOf(behind[changed[i].Path], changed[i].Names); len(names) <= room {
				room -= len(names)
				item += names
			}
		}
		p.b = append(append(p.b, item...), '\n')
	}
	if len(p.b) == empty || len(p.b) > p.limit {
		p.b = p.b[:mark]
	}
}

// splitFiles returns the changed files, newest first and those that are gone behind them, and those that were only read, by rank.
func (p *page) splitFiles() (changed, read []*abi.LedgerFile) {
	ranks, shortest := map[string]float64{}, maxToken
	for i := range p.s.Work.Files {
		f := &p.s.Work.Files[i]
		switch {
		case f.Changes > 0:
			changed = append(changed, f)
		case f.Reads > 0:
			read = append(read, f)
			ranks[f.Path] = 0
			shortest = min(shortest, len(f.Path))
		}
	}
	for i := range p.names {
		name := p.names[i].name.Text
		if len(name) < shortest {
			continue
		}
		if _, ok := ranks[name]; ok {
			ranks[name] = p.names[i].rank
		}
	}
	slices.SortFunc(changed, func(a, b *abi.LedgerFile) int {
		return cmp.Or(strings.Compare(a.State, b.State), cmp.Compare(b.Changed, a.Changed), cmp.Compare(a.Path, b.Path))
	})
	slices.SortFunc(read, func(a, b *abi.LedgerFile) int {
		return cmp.Or(cmp.Compare(ranks[b.Path], ranks[a.Path]), cmp.Compare(b.Read, a.Read), cmp.Compare(a.Path, b.Path))
	})
	return changed, read
}

// isGone reports a file that was deleted or restored.
func (p *page) isGone(path string) bool {
	if p.gone == nil {
		p.gone = map[string]bool{}
		for i := range p.s.Work.Files {
			if f := &p.s.Work.Files[i]; f.State != "" {
				p.gone[f.Path] = true
			}
		}
	}
	return p.gone[path]
}

// homes are the best names that belong to files, by their paths.
func (p *page) homes(files []*abi.LedgerFile) map[string][]string {
	out := make(map[string][]string, len(files))
	for _, f := range files {
		out[f.Path] = nil
	}
	for i := range p.names[:min(len(p.names), p.limit/nameSize)] {
		n := p.names[i].name
		if list, listed := out[n.Home]; listed && len(list) < perFile && !strings.Contains(n.Home, n.Text) {
			out[n.Home] = append(list, n.Text)
		}
	}
	return out
}

// namesOf lists names that the page does not hold yet: those of the highest rank, then those that
// the file defines.
func (p *page) namesOf(list, defined []string) string {
	b := make([]byte, 0, perFile*nameSize)
	n := 0
	for _, l := range [][]string{list, defined} {
		for _, name := range l {
			if n >= perFile || p.shown[name] {
				continue
			}
			p.shown[name] = true
			n++
			if n == 1 {
				b = append(b, ':')
			}
			b = append(append(b, ' '), clean(name)...)
		}
	}
	return string(b)
}

// fileLine is the line of a changed file: what was done, its path, and when and how.
func fileLine(f *abi.LedgerFile) string {
	out := "- changed " + clean(f.Path) + " (" + at(f.Changed)
	switch f.Created {
	case 0:
	case f.Changed:
		out = "- created " + clean(f.Path) + " (" + at(f.Created)
	default:
		out = "- created " + clean(f.Path) + " (" + at(f.Created) + ", changed " + at(f.Changed)
	}
	if f.Verb != "" {
		out += ", " + line(f.Verb, 40)
	}
	if f.State != "" {
		out += ", now " + f.State
	}
	return out + ")"
}

// grouped writes a line for each folder.
func (p *page) grouped(changed []*abi.LedgerFile, mark int) {
	var dirs []string
	by := map[string][]*abi.LedgerFile{}
	for _, f := range changed {
		dir := f.Path[:strings.LastIndexByte(f.Path, '/')+1]
		if by[dir] == nil {
			dirs = append(dirs, dir)
		}
		by[dir] = append(by[dir], f)
	}
	limit := min(p.limit, mark+p.limit*2/5)
	left := 0
	for _, dir := range dirs {
		if one := fileLine(by[dir][0]); len(by[dir]) == 1 && len(p.b)+len(one)+1 <= limit { // its whole path need not stand among the names
			p.b = append(append(p.b, one...), '\n')
			continue
		}
		item := "- changed in " + clean(cmp.Or(strings.TrimSuffix(dir, "/"), ".")) + ": "
		n := 0
		for _, f := range by[dir] {
			one := groupedFile(f)
			if n > 0 {
				one = ", " + one
			}
			if len(p.b)+len(item)+len(one)+1 > limit {
				left++
				continue
			}
			item += one
			n++
		}
		if n > 0 {
			p.b = append(append(p.b, item...), '\n')
		}
	}
	if note := "- and " + strconv.Itoa(left) + " more changed files\n"; left > 0 && len(p.b)+len(note) <= p.limit {
		p.b = append(p.b, note...)
	}
}

func groupedFile(f *abi.LedgerFile) string {
	out := clean(base(f.Path)) + " (" + at(f.Changed)
	if f.Created != 0 && f.Created == f.Changed {
		out = clean(base(f.Path)) + " (created " + at(f.Changed)
	}
	if f.State != "" {
		out += ", now " + f.State
	}
	return out + ")"
}
