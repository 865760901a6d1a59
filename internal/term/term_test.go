package term_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/term"
)

// TestLiveLineFollowsTheWidth: a terminal that becomes narrower breaks the line into rows, which are
// cleared, and the next line fits.
func TestLiveLineFollowsTheWidth(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	term.LiveLines(&out, []int{100, 30, 60}, "said")
	text := out.String()
	if n := strings.Count(text, "\x1b["); n != 2 || !strings.Contains(text, "\x1b[2A\r\x1b[J") {
		t.Errorf("%d escapes: %q", n, text)
	}
	_, narrow, _ := strings.Cut(text, "\x1b[J")
	for line := range strings.SplitSeq(regexp.MustCompile("\x1b\\[\\d*[AJ]").ReplaceAllString(narrow, ""), "\r") {
		if n := utf8.RuneCountInString(line); n > 59 {
			t.Errorf("a line of %d: %q", n, line)
		}
	}
	if !strings.HasSuffix(text, "\rsaid\n") {
		t.Errorf("%q", text)
	}
}

// TestWrap: a terminal gets lines that fit, broken between words.
func TestWrap(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := term.Wrap(&out, 20, "  short\n  policy failed: the guest panicked\n"+strings.Repeat("ä", 25)+"\n"); err != nil {
		t.Fatal(err)
	}
	want := "  short\n  policy failed: the\n      guest panicked\n" + strings.Repeat("ä", 20) + "\n      " + strings.Repeat("ä", 5) + "\n"
	if out.String() != want {
		t.Errorf("%q, want %q", out.String(), want)
	}
}
