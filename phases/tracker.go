package phases

import "github.com/mortise-dev/mortise/abi"

// tracker knows which messages a plugin was sent as a delta. Messages are
// numbered in the order in which they are first met, so that one number per
// plugin is enough, however the list is changed by compactions.
type tracker struct {
	numbers map[string]uint64
	last    uint64
	// lastID stood at lastIndex when the list was numbered.
	lastID    string
	lastIndex int
	sent      map[string]uint64
}

// number numbers the messages that are new.
func (t *tracker) number(messages []abi.Message) {
	if t.numbers == nil {
		t.numbers, t.sent = make(map[string]uint64, len(messages)), make(map[string]uint64)
	}
	from := 0
	if t.last > 0 && t.lastIndex < len(messages) && messages[t.lastIndex].ID == t.lastID {
		// The list only grew.
		from = t.lastIndex + 1
	}
	for i := from; i < len(messages); i++ {
		if id := messages[i].ID; id != "" && t.numbers[id] == 0 {
			t.last++
			t.numbers[id] = t.last
		}
	}
	if n := len(messages); n > 0 {
		t.lastID, t.lastIndex = messages[n-1].ID, n-1
	}
}

// delta returns where the messages begin that stand after the newest one that
// the plugin was sent. The mark is to be given to advance when the hook has
// succeeded.
func (t *tracker) delta(plugin string, messages []abi.Message) (from int, mark uint64) {
	t.number(messages)
	sent := t.sent[plugin]
	for from = len(messages); from > 0; from-- {
		// A message without an id has no number and passes for new.
		if n := t.numbers[messages[from-1].ID]; n != 0 && n <= sent {
			break
		}
	}
	return from, t.last
}

func (t *tracker) advance(plugin string, mark uint64) {
	t.sent[plugin] = max(t.sent[plugin], mark)
}
