package term

import (
	"bytes"
	"io"
	"os"
	"strings"
	"unicode/utf8"

	"golang.org/x/term"
)

// fitting breaks lines at the width of a terminal; what is not one gets them whole.
func fitting(out io.Writer) io.Writer {
	if width := terminalWidth(out); width > leastWidth {
		return &wrapping{out: out, width: width}
	}
	return out
}

// terminalWidth is the width of a terminal in characters, 0 if out is none.
func terminalWidth(out io.Writer) int {
	f, ok := out.(*os.File)
	if !ok {
		return 0
	}
	width, _, err := term.GetSize(int(f.Fd()))
	if err != nil {
		return 0
	}
	return width
}

// wrapping breaks lines that are wider than a terminal between words.
type wrapping struct {
	out   io.Writer
	width int
	rest  []byte // of a line that is not complete
}

// Write implements io.Writer. What follows the last line break waits for the next one.
func (w *wrapping) Write(b []byte) (int, error) {
	w.rest = append(w.rest, b...)
	end := bytes.LastIndexByte(w.rest, '\n') + 1
	var lines strings.Builder
	for line := range strings.Lines(string(w.rest[:end])) {
		wrap(&lines, strings.TrimSuffix(line, "\n"), w.width)
	}
	w.rest = append(w.rest[:0], w.rest[end:]...)
	if _, err := io.WriteString(w.out, lines.String()); err != nil {
		return 0, err
	}
	return len(b), nil
}

// hang is how far the rows of a line are moved in that follow the first.
const hang = "      "

func wrap(out *strings.Builder, line string, width int) {
	for utf8.RuneCountInString(line) > width {
		runes := []rune(line)
		cut := strings.LastIndexByte(string(runes[:width+1]), ' ')
		if cut <= len(hang) { // a word that is wider than the terminal
			cut = len(string(runes[:width]))
		}
		out.WriteString(strings.TrimRight(line[:cut], " ") + "\n")
		line = hang + strings.TrimLeft(line[cut:], " ")
	}
	out.WriteString(line + "\n")
}

// leastWidth is the least width of a terminal that is believed.
const leastWidth = 20
