package compactcmd

import (
	"fmt"
	"strings"
	"sync"

	"github.com/mortise-dev/mortise/compaction/eval"
	"github.com/mortise-dev/mortise/internal/term"
)

// evalProgress shows how far a measurement is: a bar on a terminal, a line at
// each tenth elsewhere.
type evalProgress struct {
	*term.Progress

	mu    sync.Mutex
	tenth int
}

// barWidth is how wide the bar is, in characters.
const barWidth = 24

func (p *evalProgress) step(s eval.Progress) {
	if s.All == 0 {
		return
	}
	text := fmt.Sprintf("%d of %d compactions  %s  %s", s.Done, s.All, s.Set, s.Contender)
	full := s.Done * barWidth / s.All
	p.Draw(s.Done == s.All, "["+strings.Repeat("#", full)+strings.Repeat(".", barWidth-full)+"] "+text)
	p.mu.Lock()
	defer p.mu.Unlock()
	if tenth := s.Done * 10 / s.All; !p.Live && tenth > p.tenth {
		p.tenth = tenth
		p.Say("%3d%%  %s", tenth*10, text)
	}
}
