package host

import (
	"fmt"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/engine"
	"github.com/mortise-dev/mortise/internal/wasm"
)

// maxLinks is how many modules may be linked to one.
const maxLinks = 16

// Link is a module whose exported functions the main module, and other links, may
// import by its name. Each instance of the main module gets its own, and a call
// shares its fuel and time with them. A memory, table or global is not shared.
type Link struct {
	// Name is the module name that imports give.
	Name string
	// Path, Wasm and SHA256 are as in [Spec].
	Path   string
	Wasm   []byte
	SHA256 string
}

// LinkInfo describes what a linked module is.
type LinkInfo struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"`
	// Size of the binary in bytes.
	Size int `json:"size"`
}

// links are the modules that imports may name.
type links map[string]*wasm.Module

// checkLinks reads the links and puts each behind those that it imports from.
func checkLinks(spec Spec) ([]engine.Linked, []LinkInfo, *problem) {
	if len(spec.Links) > maxLinks {
		return nil, nil, &problem{
			fmt.Sprintf("has %d links, and %d are allowed", len(spec.Links), maxLinks),
			"link the modules into fewer when they are built", ErrLimit,
		}
	}
	byName, all := links{}, make([]engine.Linked, 0, len(spec.Links))
	infos := make([]LinkInfo, 0, len(spec.Links))
	for _, l := range spec.Links {
		if bad := linkName(l.Name, byName, spec.Grants.Functions); bad != nil {
			return nil, nil, bad
		}
		one, info, bad := readLink(l, spec.Limits)
		if bad != nil {
			return nil, nil, bad.ofLink(l.Name)
		}
		byName[l.Name] = one.Parsed
		all, infos = append(all, one), append(infos, info)
	}
	for _, l := range all {
		for _, p := range problems(l.Parsed, spec.Limits.MemoryPages, byName, &spec.Grants) {
			if p.err != nil {
				return nil, nil, p.ofLink(l.Name)
			}
		}
	}
	sorted, bad := sortLinks(all)
	return sorted, infos, bad
}

// ofLink words a problem of a link for the main module.
func (p problem) ofLink(name string) *problem {
	p.text = fmt.Sprintf("has the link %q, which %s", engine.Clean(name, engine.MaxName), p.text)
	return &p
}

// linkName refuses names that are confusable with others.
func linkName(name string, taken links, functions []Function) *problem {
	shown := engine.Clean(name, engine.MaxName)
	if name == "" {
		return &problem{"has a link without a name", "set Link.Name to the module name that imports give", ErrInvalid}
	}
	if _, twice := taken[name]; twice {
		return &problem{fmt.Sprintf("has two links named %q", shown), "give each a name of its own", ErrInvalid}
	}
	if slices.ContainsFunc(functions, func(f Function) bool { return f.Module == name }) {
		return &problem{
			fmt.Sprintf("has a link named %q, and Grants.Functions offers functions of that module", shown),
			"give one of the two another name, or leave one out", ErrInvalid,
		}
	}
	reserved := name == "main" || slices.ContainsFunc([]string{"mortise:", "extism:", "wasi_"}, func(prefix string) bool {
		return strings.HasPrefix(name, prefix) && name != engine.ModuleUser // the host offers nothing there by itself
	})
	if reserved {
		return &problem{fmt.Sprintf("has a link named %q, which the host itself offers", shown), "give it another name", ErrInvalid}
	}
	return nil
}

func readLink(l Link, limits Limits) (engine.Linked, LinkInfo, *problem) {
	if l.Path == "" && l.Wasm == nil {
		return engine.Linked{}, LinkInfo{}, &problem{"has neither Path nor Wasm", "set one of them", ErrInvalid}
	}
	b, bad := open(l.Path, l.Wasm, l.SHA256, limits.ModuleBytes)
	info := LinkInfo{Name: engine.Clean(l.Name, engine.MaxName), SHA256: b.sha256, Size: len(b.bin)}
	return engine.Linked{Name: l.Name, Wasm: b.bin, Parsed: b.parsed}, info, bad
}

// importProblem compares an import with the link that it names.
func (l links) importProblem(im wasm.Import) *problem {
	full := engine.Clean(im.Module, engine.MaxName) + "." + engine.Clean(im.Name, engine.MaxName)
	if im.Kind != wasm.KindFunc {
		return &problem{
			fmt.Sprintf("imports the %s %s, but only functions can be linked", im.Kind, full),
			"link the modules into one when they are built", ErrImport,
		}
	}
	ex, ok := l[im.Module].Export(im.Name)
	switch {
	case !ok:
		return &problem{"imports " + full + ", which the linked module does not export", "link a version of it that does", ErrImport}
	case ex.Kind != wasm.KindFunc:
		return &problem{fmt.Sprintf("imports the func %s, but it is a %s", full, ex.Kind), "build both against the same version", ErrImport}
	case ex.Func.String() != im.Func.String():
		return &problem{
			fmt.Sprintf("imports %s as %s, but it is %s", full, im.Func, ex.Func),
			"build both against the same version", ErrImport,
		}
	}
	return nil
}

// sortLinks puts each link behind those that it imports from, and refuses circles.
func sortLinks(all []engine.Linked) ([]engine.Linked, *problem) {
	sorted := make([]engine.Linked, 0, len(all))
	done := map[string]bool{}
	var path []string
	var visit func(l engine.Linked) *problem
	visit = func(l engine.Linked) *problem {
		if done[l.Name] {
			return nil
		}
		if at := slices.Index(path, l.Name); at >= 0 {
			circle := make([]string, 0, len(path)+1)
			for _, name := range append(path[at:], l.Name) {
				circle = append(circle, fmt.Sprintf("%q", engine.Clean(name, engine.MaxName)))
			}
			return &problem{
				"has links that import from each other in a circle: " + strings.Join(circle, " -> "),
				"move what they share into a module of its own", ErrImport,
			}
		}
		path = append(path, l.Name)
		for _, next := range all {
			if engine.Imports(l.Parsed, next.Name) {
				if bad := visit(next); bad != nil {
					return bad
				}
			}
		}
		path = path[:len(path)-1]
		done[l.Name] = true
		sorted = append(sorted, l)
		return nil
	}
	for _, l := range all {
		if bad := visit(l); bad != nil {
			return nil, bad
		}
	}
	return sorted, nil
}
