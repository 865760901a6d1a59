package archtest_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestExamples_short: what an embedder does first is an example of at most so many lines, with all that it
// declares, and docs/embedding.md links its file.
func TestExamples_short(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..")
	guide, err := os.ReadFile(filepath.Join(root, "docs", "embedding.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range []struct {
		file, name string
		most       int
	}{
		{"host/example_test.go", "ExampleHost_Load", 40},
		{"example_plugins_test.go", "Example_plugins", 40},
		{"compaction/example_compact_test.go", "ExampleCompact", 20},
		{"compaction/example_test.go", "ExampleCompactor", 40},
		{"serve/example_test.go", "Example", 40},
		{"example_native_test.go", "Example_nativePlugin", 40},
	} {
		switch n := linesOf(t, filepath.Join(root, e.file), e.name); {
		case n == 0:
			t.Errorf("%s: there is no %s", e.file, e.name)
		case n > e.most:
			t.Errorf("%s: %s and what it declares have %d lines, more than %d", e.file, e.name, n, e.most)
		default:
			t.Logf("%s: %s has %d lines", e.file, e.name, n)
		}
		if !strings.Contains(string(guide), "../"+e.file) {
			t.Errorf("docs/embedding.md does not link %s", e.file)
		}
	}
}

// linesOf counts the lines of a function, of the declarations of its package's tests that it uses, and of their methods.
func linesOf(t *testing.T, path, name string) (n int) {
	t.Helper()
	set, decls := token.NewFileSet(), map[string][]ast.Node{}
	files, err := filepath.Glob(filepath.Join(filepath.Dir(path), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		file, err := parser.ParseFile(set, f, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		mine := map[string][]ast.Node{}
		declared(file, mine)
		if f == path || mine[name] == nil { // each package may have an Example
			maps.Copy(decls, mine)
		}
	}
	todo, seen := []string{name}, map[string]bool{}
	for len(todo) > 0 {
		next := todo[0]
		todo = todo[1:]
		if seen[next] {
			continue
		}
		seen[next] = true
		for _, node := range decls[next] {
			n += set.Position(node.End()).Line - set.Position(node.Pos()).Line + 1
			ast.Inspect(node, func(node ast.Node) bool {
				if id, ok := node.(*ast.Ident); ok {
					todo = append(todo, id.Name)
				}
				return true
			})
		}
	}
	return n
}

// declared lists the top-level declarations of a file by name, methods under their type.
func declared(file *ast.File, into map[string][]ast.Node) {
	for _, decl := range file.Decls {
		switch d := decl.(type) {
		case *ast.FuncDecl:
			name := d.Name.Name
			if d.Recv != nil {
				kind := d.Recv.List[0].Type
				if star, ok := kind.(*ast.StarExpr); ok {
					kind = star.X
				}
				if id, ok := kind.(*ast.Ident); ok {
					name = id.Name
				}
			}
			into[name] = append(into[name], d)
		case *ast.GenDecl:
			for _, spec := range d.Specs {
				switch s := spec.(type) {
				case *ast.TypeSpec:
					into[s.Name.Name] = append(into[s.Name.Name], s)
				case *ast.ValueSpec:
					for _, id := range s.Names {
						into[id.Name] = append(into[id.Name], s)
					}
				}
			}
		}
	}
}
