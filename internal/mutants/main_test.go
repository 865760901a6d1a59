package main

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const entry = "id: A\nrow: r\nfile: f.go\npackage: ./p\nrun: T\nold:\na\n\nb\nnew:\nc\n---\n"

func TestParse(t *testing.T) {
	t.Parallel()
	got, err := parse("# what it is\n\n" + entry)
	want := mutation{id: "A", row: "r", file: "f.go", pkg: "./p", test: "T", before: "a\n\nb", after: "c"}
	if err != nil || len(got) != 1 || got[0] != want {
		t.Fatalf("got %+v, %v", got, err)
	}
	for list, want := range map[string]string{
		entry + entry: "line 24: mutation A: the id is there twice",
		strings.Replace(entry, "run: T\n", "", 1):        "are required",
		strings.Replace(entry, "run: T", "ran: T", 1):    `line 5: "ran" is no field`,
		strings.Replace(entry, "---\n", "", 1):           "the line of dashes after it is missing",
		strings.Replace(entry, "\nc\n", "\na\n\nb\n", 1): "is the new one",
	} {
		if _, err := parse(list); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q", err, want)
		}
	}
}

func TestJudge(t *testing.T) {
	t.Parallel()
	exit := errors.New("exit status 1")
	for said, want := range map[string]string{
		"=== RUN   T\n--- FAIL: T\nFAIL\n":                                dead,
		"=== RUN   T\npanic: boom\n":                                      dead,
		"# p\nx.go:1:2: undefined: y\nFAIL\tp [build failed]\nFAIL\n":     notCompiling,
		"testing: warning: no tests to run\nPASS\nok p [no tests to run]": noTest,
	} {
		if got := judge([]byte(said), exit); got != want {
			t.Errorf("%q is judged %s, want %s", said, got, want)
		}
	}
	if got := judge([]byte("=== RUN   T\n--- PASS: T\n"), nil); got != alive {
		t.Errorf("a test that passes is judged %s", got)
	}
}

// TestRun mutates a module of its own, and leaves its files as they are.
func TestRun(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	const source = "package p\n\nfunc add(a int , b int) int { return a + b }\n"
	for name, text := range map[string]string{
		"go.mod": "module example.test/p\n\ngo 1.24\n", "p.go": source,
		"p_test.go": "package p\n\nimport \"testing\"\n\nfunc TestAdd(t *testing.T) {\n\tif add(2, 0) != 2 {\n\t\tt.Fatal()\n\t}\n}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for verdict, change := range map[string][3]string{
		dead:                      {"a + b", "a * b", "^TestAdd$"},
		alive:                     {"a + b", "a - b", "^TestAdd$"},
		stale + " occurs 0 times": {"a + c", "a - b", "^TestAdd$"},
		stale + " occurs 2 times": {" int ", " uint ", "^TestAdd$"},
		notCompiling:              {"a + b", "a + c", "^TestAdd$"},
		noTest:                    {"a + b", "a * b", "^TestOther$"},
	} {
		list := "id: A\nrow: adds\nfile: p.go\npackage: .\nrun: " + change[2] + "\nold:\n" + change[0] + "\nnew:\n" + change[1] + "\n---\n"
		if err := os.WriteFile("list", []byte(list), 0o600); err != nil {
			t.Fatal(err)
		}
		var out strings.Builder
		err := run(t.Context(), &out, "list", "", false)
		if (err == nil) != (verdict == dead) || err != nil && !strings.Contains(err.Error(), verdict) || !strings.Contains(out.String(), "A ") {
			t.Errorf("%s: %v\n%s", verdict, err, out.String())
		}
	}
	if got, err := os.ReadFile("p.go"); err != nil || string(got) != source {
		t.Errorf("the source is %q, %v", got, err)
	}
	if err := run(t.Context(), &strings.Builder{}, "list", "^B$", false); err == nil || !strings.Contains(err.Error(), "no mutation was run") {
		t.Errorf("nothing chosen: %v", err)
	}
}
