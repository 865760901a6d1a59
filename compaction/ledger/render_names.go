package ledger

import (
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// wholePart is for how many bytes of a small page a name is shown whole; of the paths behind them only what is below
// the folder is shown, for there another name counts more.
const wholePart = 30

// others fills the page with the best names that it does not hold yet, grouped by form, but on a tiny page of a dialogue.
func (p *page) others() {
	list, named := p.candidates()
	held := p.held(list, named)
	p.fieldNames(held)
	labels, group := nameLabels(), form
	room := p.limit - len(p.b) - len("\n## "+secNames+"\n") - len("- Paths:\n")
	if p.share.talk && p.limit < tinyPage {
		labels[0], group = "-", func(string) int { return 0 }
	} else {
		room -= 2 * len("- Links and ids: \n")
	}
	var groups [4][]byte
	groups[3], room = p.namedOthers(named, held, room)
	for _, n := range list {
		if room < minToken+1 {
			break
		}
		if held.has(n) || len(n) >= room || p.share.talk && useless(n) {
			continue
		}
		g := &groups[group(n)]
		*g = append(append(*g, ' '), n...)
		room -= len(n) + 1
		held.add(n)
	}
	p.nameLines(labels, groups)
}

// candidates are the names that may be listed, best first: those of the state as they are shown, and those of a dialogue.
func (p *page) candidates() (list []string, named []int) {
	list = make([]string, len(p.names))
	for i := range p.names {
		list[i] = clean(p.names[i].name.Text)
		if p.share.short && i >= p.limit/wholePart {
			list[i] = p.relative(list[i])
		}
	}
	if p.lex != nil {
		named = p.lex.byCount()
	}
	return list, named
}

// useless reports a name that no one needs alone: a time, or a word with a hyphen.
func useless(n string) bool { return measure(n) || compound(n) || moment(n) }

func (p *page) nameLines(labels [4]string, groups [4][]byte) {
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

// nameLabels begin the lines of names, by their form.
func nameLabels() [4]string {
	return [4]string{"- Paths:", "- Links and ids:", "- Identifiers:", "- Named:"}
}

// namedOthers are names of a dialogue that the page does not hold.
func (p *page) namedOthers(named []int, held *holding, room int) (list []byte, left int) {
	if p.lex == nil {
		return nil, room
	}
	room -= len("- Named: \n")
	for _, w := range named {
		if n := p.lex.label[w]; !p.lex.seen[w] && !held.has(n) && len(n) < room {
			list = append(append(list, ' '), n...)
			room -= len(n) + 1
			held.add(n)
		}
	}
	return list, room
}

// compound reports a word with a hyphen and nothing else that would make it a name.
func compound(n string) bool {
	for i := range len(n) {
		if c := n[i]; c != '-' && (c < 'a' || c > 'z') && c < 0x80 && (i > 0 || c < 'A' || c > 'Z') {
			return false
		}
	}
	return true
}

// form groups names: paths, links and numbers, identifiers.
func form(n string) int {
	if strings.IndexByte(n, '/') >= 0 {
		if strings.Contains(n, "://") {
			return 1
		}
		return 0
	}
	if strings.IndexByte(n, '@') > 0 { // an address
		return 1
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
	if i := strings.LastIndexByte(n, '.'); i > 0 && isExtension(n[i+1:]) {
		return 0
	}
	return 2
}

// isExtension reports what file names end with, and other names such as console.log and theme.fg do not.
func isExtension(s string) bool {
	switch s {
	case "bash", "c", "cc", "cfg", "cjs", "conf", "cpp", "cs", "css", "csv", "dart", "db", "diff", "env", "erl", "ex", "exs", "gif", "go", "gz", "h", "hpp",
		"hs", "htm", "html", "ini", "ipynb", "java", "jpg", "js", "json", "jsonl", "jsx", "kt", "lock", "lua", "md", "mdx", "mjs", "ml", "mod", "patch", "pdf",
		"php", "png", "proto", "ps1", "py", "pyi", "rb", "rs", "rst", "scala", "scss", "sh", "sql", "sum", "svelte", "svg", "swift", "tar", "tmpl", "toml",
		"ts", "tsv", "tsx", "txt", "vue", "wasm", "wat", "xml", "yaml", "yml", "zip", "zsh":
		return true
	}
	return false
}

// Index lists the best names of a state and nothing else, in at most budget bytes: a base line to
// compare renderings with.
func Index(s *abi.Ledger, budget int) string {
	var b strings.Builder
	for _, r := range best(s) {
		if n := clean(r.name.Text); b.Len()+len(n)+1 <= budget {
			b.WriteString(n + " ")
		}
	}
	return strings.TrimRight(b.String(), " ")
}
