package metrics

import (
	"strings"
	"sync"
)

// other counts what is beyond the bound of a label.
const other = "other"

// maxValue bounds one value of a label, in bytes.
const maxValue = 100

// label bounds how many values a label has.
type label struct {
	most int

	mu   sync.Mutex
	seen map[string]bool
}

func newLabel(most int, known ...string) *label {
	l := &label{most: most, seen: make(map[string]bool)}
	for _, v := range known {
		l.seen[v] = true
	}
	return l
}

// value returns v, or "other" if there are enough values without it. Known ones always count apart.
func (l *label) value(v string) string {
	v = strings.ToValidUTF8(v[:min(len(v), maxValue)], "?")
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case l.seen[v]:
	case l.most <= 0:
		return other
	default:
		l.seen[v] = true
		l.most--
	}
	return v
}
