package cli_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/mortise-dev/mortise/internal/cli"
)

// TestLiveLineFollowsTheWidth: a terminal that becomes narrower breaks the line into rows, which are
// cleared, and the next line fits.
func TestLiveLineFollowsTheWidth(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	cli.LiveLines(&out, []int{100, 30, 60}, "said")
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
