package mailbox_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDoc holds that the package's documentation names each of its files, and none that is gone.
func TestDoc(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("doc.go")
	must(t, err)
	files, err := filepath.Glob("*.go")
	must(t, err)
	there := map[string]bool{}
	for _, name := range files {
		there[name] = true
		if !strings.HasSuffix(name, "_test.go") && name != "doc.go" && !strings.Contains(string(text), name) {
			t.Errorf("the file %s is not named", name)
		}
	}
	for word := range strings.FieldsSeq(string(text)) {
		if strings.HasSuffix(word, ".go") && !there[word] {
			t.Errorf("there is no file %s", word)
		}
	}
}
