package ledger

import (
	"math"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/abi"
)

// author is who wrote a text that holds a name.
type author uint8

const (
	byResult author = iota
	byCall
	byUser
	byAgent
)

// maxRead is how much of one text is read for names, in bytes from its head; of a longer one
// the tail is read, too.
const (
	maxRead     = 256 << 10
	maxReadTail = 64 << 10
)

// nameTable counts names.
type nameTable struct {
	list []abi.LedgerName
	at   map[string]int32
	c    *classes
}

func newNameTable(list []abi.LedgerName) *nameTable {
	t := &nameTable{list: list, c: newClasses()}
	t.index()
	return t
}

func (t *nameTable) index() {
	t.at = make(map[string]int32, len(t.list)+256)
	for i := range t.list {
		t.at[t.list[i].Text] = int32(i)
	}
}

// read counts the names of a text.
func (t *nameTable) read(text string, m int, by author, home string) {
	if len(text) > maxRead+maxReadTail {
		t.read(text[len(text)-maxReadTail:], m, by, home)
		text = text[:maxRead]
	}
	sc := scanner{c: t.c, s: text}
	for {
		k, ok := sc.next()
		if !ok {
			return
		}
		if !loud(k) && (by != byResult || !grepLine(k)) {
			t.count(k, m, by, home)
		}
	}
}

// loud reports a common word in capitals, which names nothing.
func loud(k string) bool {
	if len(k) > 12 || k[0] < 'A' || k[0] > 'Z' || k[len(k)-1] < 'A' || k[len(k)-1] > 'Z' || strings.ToUpper(k) != k {
		return false
	}
	switch k {
	case "SHOULD", "WRONG", "TWICE", "NEVER", "ALWAYS", "IMPORTANT", "EXACTLY", "WARNING", "CRITICAL", "REQUIRED", "OPTIONAL", "CANNOT", "WITHOUT", "NOTHING", "EVERYTHING":
		return true
	}
	return isCommon(strings.ToLower(k))
}

// grepLine reports what grep prints in front of a line of context: a file and the line's number.
func grepLine(k string) bool {
	i := strings.LastIndexByte(k, '.')
	if i < 1 {
		return false
	}
	ext, rest, _ := strings.Cut(k[i+1:], "-")
	n := digits(rest, 0)
	return isExtension(ext) && n > 0 && n < len(rest) && rest[n] == '-'
}

func (t *nameTable) count(text string, m int, by author, home string) {
	i, ok := t.at[text]
	if !ok {
		if len(t.list) >= maxNames {
			t.evict(m)
		}
		i = int32(len(t.list))
		text = strings.Clone(text)
		t.at[text] = i
		t.list = append(t.list, abi.LedgerName{Text: text, Home: home})
	}
	n := &t.list[i]
	n.Count++
	n.Last = m
	switch by {
	case byCall:
		n.Call, n.Own = true, m
	case byUser:
		n.User, n.Own = true, m
	case byAgent:
		n.Agent, n.Own = true, m
	case byResult:
	}
	if n.Home == "" {
		n.Home = home
	}
}

// evict drops the names of the lowest rank, and keeps the order of the others.
func (t *nameTable) evict(m int) {
	ranks := make([]float64, len(t.list))
	for i := range t.list {
		ranks[i] = rank(&t.list[i], m)
	}
	sorted := slices.Clone(ranks)
	slices.Sort(sorted)
	floor := sorted[len(sorted)-keptNames]
	kept := t.list[:0]
	for i := range ranks {
		if ranks[i] >= floor && len(kept) < keptNames {
			kept = append(kept, t.list[i])
		}
	}
	clear(t.list[len(kept):])
	t.list = kept
	t.index()
}

// Weights of a rank.
const (
	callWeight  = 4
	userWeight  = 3
	agentWeight = 1.5
	// measureWeight is that of a short number with a unit, such as a duration, in a result.
	measureWeight = 0.3
	plainAge      = 0.2
	lastAge       = 0.6
	ownAge        = 0.6
)

// rank orders names by how likely the agent needs them again. Like all scores here it is made up of exact
// operations, each rounded by its conversion, so that it is the same on every platform.
func rank(n *abi.LedgerName, size int) float64 {
	w := math.Sqrt(math.Sqrt(float64(n.Count)))
	if n.Call {
		w += callWeight
	}
	if n.User {
		w += userWeight
	}
	if n.Agent {
		w += agentWeight
	}
	if !n.Call && !n.User && measure(n.Text) {
		w = float64(w * measureWeight)
	}
	total := float64(max(size, 1))
	age := plainAge + float64(lastAge*(float64(n.Last)/total)) + float64(ownAge*(float64(n.Own)/total))
	return float64(w * age)
}

// measure reports a time, a duration or a version.
func measure(s string) bool {
	if len(s) > 9 || s[0] < '0' || s[0] > '9' {
		return false
	}
	return strings.Trim(s, "0123456789.:ms%x-") == ""
}

// ranked is a name with its rank.
type ranked struct {
	name *abi.LedgerName
	rank float64
}

// best returns the names, those of the highest rank first.
func best(s *abi.Ledger) []ranked {
	list := make([]ranked, len(s.Names))
	for i := range s.Names {
		list[i] = ranked{name: &s.Names[i], rank: rank(&s.Names[i], s.Messages)}
	}
	slices.SortFunc(list, func(a, b ranked) int {
		switch {
		case a.rank > b.rank:
			return -1
		case a.rank < b.rank:
			return 1
		case a.name.Own != b.name.Own:
			return b.name.Own - a.name.Own
		}
		return strings.Compare(a.name.Text, b.name.Text)
	})
	return list
}

// Focus raises the names that a text holds, as if the user had written them.
func Focus(s *abi.Ledger, text string) {
	if text == "" {
		return
	}
	for i := range s.Names {
		if strings.Contains(text, s.Names[i].Text) {
			s.Names[i].User, s.Names[i].Own, s.Names[i].Last = true, s.Messages, s.Messages
		}
	}
}
