package archtest_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// documents are the Markdown files of the repository, without those that tests only read as data.
func documents(t *testing.T) []string {
	t.Helper()
	var out []string
	for path := range files(t) {
		if strings.HasSuffix(path, ".md") && !strings.Contains(path, "testdata/") {
			out = append(out, path)
		}
	}
	slices.Sort(out)
	return out
}

// TestDocuments_sizes: a guide is read by one reader in one go, and the rationale only has what is visible from outside.
func TestDocuments_sizes(t *testing.T) {
	t.Parallel()
	limits := map[string]int{"README.md": 6 << 10, "RATIONALE.md": 20 << 10, "docs/config.md": 32 << 10} // config.md is generated
	for _, path := range documents(t) {
		limit, own := limits[path]
		if !own {
			limit = 10 << 10
		}
		text := read(t, path)
		if len(text) > limit {
			t.Errorf("%s has %d bytes, more than %d", path, len(text), limit)
		}
		if lines := strings.Count(text, "\n"); path == "README.md" && lines > 120 {
			t.Errorf("%s has %d lines, more than 120", path, lines)
		}
	}
}

// TestDocuments_links: links between documents lead to files and headings that exist.
func TestDocuments_links(t *testing.T) {
	t.Parallel()
	link := regexp.MustCompile(`\]\(([^)\s]+)\)`)
	for _, path := range documents(t) {
		for _, found := range link.FindAllStringSubmatch(withoutCode(read(t, path)), -1) {
			target, anchor, _ := strings.Cut(found[1], "#")
			if strings.Contains(target, "://") || strings.HasPrefix(target, "mailto:") {
				continue
			}
			file := path
			if target != "" {
				file = filepath.ToSlash(filepath.Join(filepath.Dir(path), target))
			}
			if _, err := os.Stat(filepath.Join("..", "..", file)); err != nil {
				t.Errorf("%s links %s, which does not exist", path, found[1])
				continue
			}
			if anchor != "" && strings.HasSuffix(file, ".md") && !slices.Contains(anchors(read(t, file)), anchor) {
				t.Errorf("%s links %s, but %s has no such heading", path, found[1], file)
			}
		}
	}
}

// testsOf are the tests of all packages, with the folders in which they are.
func testsOf(t *testing.T) map[string][]string {
	t.Helper()
	out := map[string][]string{}
	function := regexp.MustCompile(`(?m)^func ((?:Test|Fuzz|Example|Benchmark)\w*)\(`)
	for path := range files(t) {
		if strings.HasSuffix(path, ".go") {
			for _, f := range function.FindAllStringSubmatch(read(t, path), -1) {
				out[f[1]] = append(out[f[1]], filepath.ToSlash(filepath.Dir(path)))
			}
		}
	}
	return out
}

// TestDocuments_acceptance: every test that a list of acceptance names exists in the package before it, where one is named.
func TestDocuments_acceptance(t *testing.T) {
	t.Parallel()
	declared := testsOf(t)
	name := regexp.MustCompile("`([a-z][a-z/]*)`|\\b((?:Test|Fuzz|Benchmark)\\w+)")
	for path, home := range map[string]string{"proxy/testdata/acceptance.md": "proxy", "hook/testdata/acceptance.md": "hook/live"} {
		n := 0
		for line := range strings.Lines(read(t, path)) {
			columns := strings.Split(line, "|")
			if len(columns) < 5 {
				continue
			}
			folder := home
			for _, found := range name.FindAllStringSubmatch(columns[3], -1) {
				switch test := found[2]; {
				case test == "":
					folder = found[1]
				case !slices.Contains(declared[test], folder):
					t.Errorf("%s: row %s: there is no %s in %s, but in %q", path, columns[1], test, folder, declared[test])
				default:
					n++
				}
			}
		}
		if n < 50 {
			t.Errorf("%s names %d tests", path, n)
		}
	}
}

// TestDocuments_tests: every test that a document names exists, in the package before it where the document names one.
func TestDocuments_tests(t *testing.T) {
	t.Parallel()
	declared := testsOf(t)
	name, folder := regexp.MustCompile("`([\\w/.-]+)`"), ""
	for _, path := range documents(t) {
		for line := range strings.Lines(read(t, path)) {
			folder = ""
			for _, found := range name.FindAllStringSubmatch(line, -1) {
				switch test := found[1]; {
				case !strings.HasPrefix(test, "Test") && !strings.HasPrefix(test, "Fuzz"):
					folder = test
				case test == "Test" || test == "Fuzz":
				case len(declared[test]) == 0:
					t.Errorf("%s names %s, which does not exist", path, test)
				case path == "docs/lessons.md" && !slices.Contains(declared[test], folder):
					t.Errorf("%s: %s is in %q, not in %q", path, test, declared[test], folder)
				}
			}
		}
	}
}

// withoutCode removes fenced blocks and code spans, in which brackets are no links.
func withoutCode(text string) string {
	text = regexp.MustCompile("(?s)\n```.*?\n```").ReplaceAllString(text, "\n")
	return regexp.MustCompile("`[^`\n]*`").ReplaceAllString(text, "")
}

// anchors are the names that headings have in links.
func anchors(text string) []string {
	var out []string
	for line := range strings.Lines(text) {
		if heading := strings.TrimLeft(line, "#"); heading != line && strings.HasPrefix(heading, " ") {
			heading = regexp.MustCompile(`[^\p{L}\p{N} _-]`).ReplaceAllString(strings.ToLower(strings.TrimSpace(heading)), "")
			out = append(out, strings.ReplaceAll(heading, " ", "-"))
		}
	}
	return out
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
