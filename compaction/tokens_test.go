package compaction_test

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/mortise-dev/mortise/abi"
	"github.com/mortise-dev/mortise/compaction"
	"github.com/mortise-dev/mortise/internal/testskip"
)

// TestEstimateByClass compares the estimates of texts of one class each with what
// the tokenizer o200k counts, which stands in o200k.tsv. The texts were written for
// this test or made at random.
func TestEstimateByClass(t *testing.T) {
	t.Parallel()
	table, err := os.ReadFile(filepath.Join("testdata", "tokens", "o200k.tsv"))
	if err != nil {
		t.Fatal(err)
	}
	classes := 0
	for line := range strings.SplitSeq(strings.TrimSpace(string(table)), "\n") {
		name, count, _ := strings.Cut(line, "\t")
		want, err := strconv.Atoi(strings.TrimSpace(count))
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join("testdata", "tokens", name+".txt"))
		if err != nil {
			t.Fatal(err)
		}
		classes++
		got := compaction.EstimateMessage(&abi.Message{Content: []abi.ContentBlock{abi.Text(string(text))}}) - 4
		ratio := float64(got) / float64(want)
		t.Logf("%-14s %5d of %5d tokens, %.2f", name, got, want, ratio)
		if ratio < 0.85 || ratio > 1.15 {
			t.Errorf("%s: %d tokens, o200k counts %d: %.2f", name, got, want, ratio)
		}
	}
	if classes < 30 {
		t.Errorf("only %d classes", classes)
	}
}

// A hostile text costs no more than time in its length.
func TestEstimateOfHostileTexts(t *testing.T) {
	t.Parallel()
	testskip.Plain(t)
	for _, s := range []string{"=-", "\n \n ", "aB1", "\x80\xff", "=== ", "+=+", "\u200d"} {
		text := strings.Repeat(s, 1<<20/len(s))
		if n := compaction.EstimateMessage(&abi.Message{Content: []abi.ContentBlock{abi.Text(text)}}); n <= 0 || n > 2*int64(len(text)) {
			t.Errorf("%q repeated: %d tokens", s, n)
		}
	}
}
