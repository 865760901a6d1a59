package ledger

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// others fills the page with the best names that it does not hold yet, grouped by form.
func (p *page) others() {
	held := p.held()
	p.fieldNames(held)
	room := p.limit - len(p.b) - len("\n## "+secNames+"\n") - 4*len("- Links and ids: \n")
	var groups [4][]byte
	if x := p.lex; x != nil {
		for _, w := range x.byCount() {
			if n := x.form[w]; !x.seen[w] && !held.has(n) && len(n) < room {
				groups[3] = append(append(groups[3], ' '), n...)
				room -= len(n) + 1
				held.add(n)
			}
		}
	}
	for i := range p.names {
		n := clean(p.names[i].name.Text)
		if room < minToken+1 {
			break
		}
		if held.has(n) || len(n) >= room || p.share.talk && measure(n) {
			continue
		}
		g := &groups[form(n)]
		*g = append(append(*g, ' '), n...)
		room -= len(n) + 1
		held.add(n)
	}
	labels := [4]string{"- Paths:", "- Links and ids:", "- Identifiers:", "- Named:"}
	first := true
	for i, g := range groups {
		if len(g) == 0 {
			continue
		}
		if first {
			p.b = append(p.b, "\n## "+secNames+"\n"...)
			first = false
		}
		p.b = append(append(append(p.b, labels[i]...), g...), '\n')
	}
}

// form groups names: paths, links and numbers, identifiers.
func form(n string) int {
	if strings.Contains(n, "://") {
		return 1
	}
	if strings.Contains(n, "/") {
		return 0
	}
	digits := 0
	for i := range len(n) {
		if n[i] >= '0' && n[i] <= '9' {
			digits++
		}
	}
	if digits*2 > len(n) || digits > 0 && len(n) >= 7 && strings.Trim(n, "0123456789abcdef-") == "" {
		return 1
	}
	if i := strings.LastIndexByte(n, '.'); i > 0 && len(n)-i <= 5 && strings.ToLower(n) == n {
		return 0
	}
	return 2
}

// holding are the names of a text, with the parts of paths.
type holding struct{ set map[string]bool }

func (p *page) held() holding {
	h := holding{set: make(map[string]bool, len(p.b)/6)}
	for sc := (scanner{c: newClasses(), s: string(p.b)}); ; {
		k, ok := sc.next()
		if !ok {
			return h
		}
		h.add(k)
	}
}

// has reports a name that the text holds.
func (h holding) has(n string) bool { return h.set[n] }

// maxPieces bounds the parts of one name.
const maxPieces = 24

// add adds a name with what a reader sees in it: the beginnings and ends of a path at its slashes, its
// elements, and the parts between dots.
func (h holding) add(n string) {
	if h.set[n] {
		return
	}
	h.set[n] = true
	if !strings.ContainsAny(n, "/.") {
		return
	}
	from := 0
	for i, pieces := 0, 0; i < len(n) && pieces < maxPieces; i++ {
		if n[i] != '/' && n[i] != '.' && n[i] != ':' {
			continue
		}
		pieces++
		h.set[n[:i]] = true
		h.set[n[i:]] = true
		h.set[n[i+1:]] = true
		h.set[n[from:i]] = true
		from = i + 1
	}
	h.set[n[from:]] = true
}

// Index lists the best names of a state and nothing else, in at most budget bytes: a base line to
// compare renderings with.
func Index(s *abi.Ledger, budget int) string {
	var b strings.Builder
	for _, r := range best(s, len(s.Names)) {
		if n := clean(r.name.Text); b.Len()+len(n)+1 <= budget {
			b.WriteString(n + " ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}
