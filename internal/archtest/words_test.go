package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"iter"
	"maps"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// most is how many of the phrases below are allowed in 10,000 words.
const most = 1

// phrases are what this project does not write, and what it writes instead. Only forms that are no good English for
// something else are listed: "stand alone" and "the test stands" are not.
func phrases() map[string]*regexp.Regexp {
	out := map[string]*regexp.Regexp{}
	for instead, pattern := range map[string]string{
		"reports whether":         `(say|tell)(s|ing)? (whether|that|what|how|which|where|when|who|why)|(said|told) (whether|that|what|how|which|where|when|who|why)`,
		"execute, run":            `carr(y|ies|ied|ying) (it |them |this )?out`,
		"notification":            `news|notices?( that| which| of|,|\.)`,
		"receive, observe":        `hears?( of| from| about|s)|heard( of| from| about)?|(is|are|was|were|be|been) told`,
		"continues, resumes":      `go(es)? on|went on|gone on|going on|take[sn]? up again`,
		"yields, is preempted":    `g(ive|ives|ave|iven|iving) way`,
		"replaces":                `st(and|ands|ood|anding) (in )?for|stand-ins?|t(ake|akes|ook|aken|aking) the places? of`,
		"resets, restores":        `put(s|ting)? back`,
		"alongside":               `beside`,
		"hint, fix":               `mend(s|ed|ing)?`,
		"poll":                    `look(s|ed)? (at|for) (it|them) again`,
		"name it":                 `the reference('s)?( engine| implementation)?`,
		"another process, caller": `whoever|somebody|nobody|someone else`,
	} {
		out[instead] = regexp.MustCompile(`\b(` + pattern + `)(\W|$)`)
	}
	return out
}

// TestWords counts phrases that a stranger stumbles over in comments, error texts and documents. Names, test data and
// generated files are not looked at. With -v it prints the counts of each folder.
func TestWords(t *testing.T) {
	t.Parallel()
	words, hits, patterns := map[string]int{}, map[string]map[string]int{}, phrases()
	allWords, allHits := 0, 0
	for file := range files(t) {
		folder := path.Dir(file)
		for _, text := range prose(t, file) {
			text = strings.ToLower(text)
			n := len(strings.Fields(text))
			words[folder], allWords = words[folder]+n, allWords+n
			for instead, pattern := range patterns {
				if found := len(pattern.FindAllString(text, -1)); found > 0 {
					if hits[folder] == nil {
						hits[folder] = map[string]int{}
					}
					hits[folder][instead] += found
					allHits += found
				}
			}
		}
	}
	for _, folder := range slices.Sorted(maps.Keys(hits)) {
		total := 0
		for _, n := range hits[folder] {
			total += n
		}
		t.Logf("%-40s %4d in %6d words: %v", folder, total, words[folder], hits[folder])
	}
	if rate := float64(allHits) * 10_000 / float64(allWords); rate > most {
		t.Errorf("%d phrases in %d words are %.1f in 10,000, more than %d: see -v", allHits, allWords, rate, most)
	} else {
		t.Logf("%d phrases in %d words: %.1f in 10,000", allHits, allWords, rate)
	}
}

// prose is what a file has for people: a document whole but for its code, and comments and error texts of Go.
func prose(t *testing.T, file string) []string {
	t.Helper()
	switch {
	case strings.HasSuffix(file, ".md"):
		return []string{withoutCode(read(t, file))}
	case !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_gen.go"):
		return nil
	}
	parsed, err := parser.ParseFile(token.NewFileSet(), filepath.Join("..", "..", file), nil, parser.ParseComments)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, group := range parsed.Comments {
		out = append(out, strings.ReplaceAll(group.Text(), "\n", " "))
	}
	ast.Inspect(parsed, func(node ast.Node) bool {
		call, ok := node.(*ast.CallExpr)
		if !ok || len(call.Args) == 0 {
			return true
		}
		if s, ok := call.Fun.(*ast.SelectorExpr); !ok || s.Sel.Name != "Errorf" && s.Sel.Name != "New" && s.Sel.Name != "Fatalf" {
			return true
		}
		if lit, ok := call.Args[0].(*ast.BasicLit); ok && lit.Kind == token.STRING {
			if text, err := strconv.Unquote(lit.Value); err == nil {
				out = append(out, text)
			}
		}
		return true
	})
	return out
}

// files yields the files of the repository below its root, without test data, binaries and other people's modules.
func files(t *testing.T) iter.Seq[string] {
	t.Helper()
	return func(yield func(string) bool) {
		root := filepath.Join("..", "..")
		err := filepath.WalkDir(root, func(at string, d fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			name := d.Name()
			if d.IsDir() && at != root && (strings.HasPrefix(name, ".") || name == "testdata" || name == "bin" || name == "node_modules") {
				return filepath.SkipDir
			}
			relative, err := filepath.Rel(root, at)
			if err == nil && !d.IsDir() && !yield(filepath.ToSlash(relative)) {
				return filepath.SkipAll
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
