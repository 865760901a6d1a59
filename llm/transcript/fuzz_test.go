package transcript_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/llm/transcript"
)

func FuzzPi(f *testing.F)     { fuzz(f, piTests()) }
func FuzzClaude(f *testing.F) { fuzz(f, claudeTests()) }
func FuzzList(f *testing.F)   { fuzz(f, listTests()) }
func FuzzAgents(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.json*"))
	if err != nil || len(files) == 0 {
		f.Fatal(err)
	}
	var seeds []formatTest
	for _, path := range files {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		seeds = append(seeds, formatTest{input: string(data)})
	}
	fuzz(f, seeds)
}
func FuzzDataset(f *testing.F) { fuzz(f, datasetTests()) }

// fuzz checks that any input is either refused with an error or comes out as a
// valid conversation, that reading it again gives the same, and that a lenient
// reader takes whatever a strict one takes.
func fuzz(f *testing.F, seeds []formatTest) {
	f.Helper()
	for _, s := range seeds {
		f.Add([]byte(s.input))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		limits := transcript.Options{MaxBytes: 1 << 20, MaxLine: 1 << 16}
		strict, err := transcript.Read(bytes.NewReader(data), limits)
		limits.Lenient = true
		lenient, lenientErr := transcript.Read(bytes.NewReader(data), limits)
		if err != nil && !strings.HasPrefix(err.Error(), "transcript: ") {
			t.Errorf("error without its package: %v", err)
		}
		if err == nil && lenientErr != nil {
			t.Errorf("only the lenient reader fails: %v", lenientErr)
		}
		for _, file := range []*transcript.File{strict, lenient} {
			if file == nil {
				continue
			}
			if file.Format == "" || len(file.Conversations) == 0 {
				t.Errorf("format %q, %d conversations", file.Format, len(file.Conversations))
			}
			for i := range file.Conversations {
				if err := file.Conversations[i].Validate(); err != nil {
					t.Errorf("conversation %d: %v", i, err)
				}
			}
		}
		if strict != nil && lenient != nil && render(strict) != render(lenient) {
			t.Error("two readings differ")
		}
	})
}
