package host_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestConformance_document finds every test that docs/conformance.md names.
func TestConformance_document(t *testing.T) {
	t.Parallel()
	doc, err := os.ReadFile(filepath.Join("..", "docs", "conformance.md"))
	if err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	for _, pattern := range []string{"*_test.go", "../internal/*/*_test.go", "../internal/*/*/*_test.go"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, f := range files {
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			_, _ = all.Write(text)
		}
	}
	names := regexp.MustCompile("`(Test[A-Za-z_]+)`").FindAllStringSubmatch(string(doc), -1)
	if len(names) < 30 {
		t.Fatalf("only %d names were found", len(names))
	}
	for _, n := range names {
		if !strings.Contains(all.String(), "\nfunc "+n[1]+"(t *testing.T) {") {
			t.Errorf("docs/conformance.md names %s, which is not there", n[1])
		}
	}
}
