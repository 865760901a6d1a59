package cli

import (
	"fmt"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/compaction/eval"
)

// evalProgress shows how far a measurement is: a bar on a terminal, a line at
// each tenth elsewhere.
type evalProgress struct {
	*progress
	tenth int
}

// barWidth is how wide the bar is, in characters.
const barWidth = 24

func (p *evalProgress) step(s eval.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || s.All == 0 {
		return
	}
	text := fmt.Sprintf("%d of %d compactions  %s  %s", s.Done, s.All, s.Set, s.Contender)
	if !p.live {
		if tenth := s.Done * 10 / s.All; tenth > p.tenth {
			p.tenth = tenth
			fmt.Fprintf(p.out, "%3d%%  %s\n", tenth*10, text)
		}
		return
	}
	if s.Done < s.All && time.Since(p.drawn) < redraw {
		return
	}
	p.drawn = time.Now()
	p.resize()
	full := s.Done * barWidth / s.All
	p.overwrite("[" + strings.Repeat("#", full) + strings.Repeat(".", barWidth-full) + "] " + text)
}
