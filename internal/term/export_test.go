package term

import (
	"fmt"
	"io"
)

// LiveLines draws long lines on a terminal whose width is that of each, and then says one line.
func LiveLines(out io.Writer, widths []int, last string) {
	width := 0
	p := &Progress{out: out, Live: true, width: 80, size: func() int { return width }}
	for i, w := range widths {
		width = w
		p.Draw(true, fmt.Sprintf("thread  %d/%d  step 0  %-19s 1.0k tokens, model sees 1.0k", i, len(widths), ""))
	}
	p.Say("%s", last)
}

// Wrap writes text as to a terminal of that width.
func Wrap(out io.Writer, width int, text string) error {
	_, err := io.WriteString(&wrapping{out: out, width: width}, text)
	return err
}
