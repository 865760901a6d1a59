package compaction

import (
	"math"
	"slices"

	"github.com/mortise-dev/mortise/abi"
)

// index remembers what a log holds, so that a step reads only what is new. It
// knows a log again by the place of its first message in memory: logs grow by
// appending, and a caller that changes a message copies the log first.
type index struct {
	first   *abi.Message
	entries []entry
	ids     map[string]int // first message of an id; nil searches instead
	calls   map[string]int // newest message that asks for a call id
	pinned  []int
	far     []int // results that stand apart from their call
	user    int   // newest message that a user wrote, -1 for none
	said    int   // newest message of the model, -1 for none
	again   bool  // the log was read from its beginning, since it is another one
	reads   int   // how often that happened
	// weighFrom is the first message whose tokens are counted.
	weighFrom int
}

// entry is one message.
type entry struct {
	id     string
	size   int
	pinned bool
	tool   bool
	call   int   // the message whose call this one answers, -1 for none
	last   int   // the last answer to a call of this message, or the message itself
	head   int   // of a tool message: what stands before it and its neighbours
	raw    int64 // tokens as it is, estimated, not calibrated
	tokens int64 // tokens as the model sees it: less when it is masked
	sum    int64 // tokens of all messages up to this one
}

func newIndex(weighFrom int) *index {
	return &index{ids: make(map[string]int), calls: make(map[string]int), user: -1, said: -1, weighFrom: weighFrom}
}

// once indexes a log for one question, with the tokens from a message on.
func once(log []abi.Message, weighFrom int) *index {
	x := &index{calls: make(map[string]int), user: -1, said: -1, weighFrom: weighFrom, entries: make([]entry, 0, len(log))}
	x.read(log)
	return x
}

// unweighed indexes a log for one question that is not about tokens.
func unweighed(log []abi.Message) *index { return once(log, math.MaxInt) }

// read brings the index up to date.
func (x *index) read(log []abi.Message) {
	if !x.knows(log) {
		old, reads := x.entries, x.reads
		*x = *newIndex(x.weighFrom)
		x.again, x.reads = true, reads+1
		x.entries = make([]entry, 0, len(log))
		for i := range log {
			x.add(log, i, old)
		}
	}
	for i := len(x.entries); i < len(log); i++ {
		x.add(log, i, nil)
	}
	if len(log) > 0 {
		x.first = &log[0]
	}
}

// knows reports whether the log begins with what was read.
func (x *index) knows(log []abi.Message) bool {
	if len(log) < len(x.entries) {
		return false
	}
	if len(x.entries) == 0 || x.first == &log[0] {
		return true
	}
	for i := range x.entries {
		if !x.entries[i].is(&log[i]) {
			return false
		}
	}
	return true
}

// is tells an edited message from the one that was read.
func (e *entry) is(m *abi.Message) bool {
	return e.id == m.ID && e.pinned == m.Pinned && e.size == messageSize(m)
}

func messageSize(m *abi.Message) int {
	n := len(m.ToolCalls)
	for i := range m.Content {
		n += len(m.Content[i].Text) + 1
	}
	return n
}

// add reads one message. What is known from before is not estimated again.
func (x *index) add(log []abi.Message, i int, old []entry) {
	m := &log[i]
	e := entry{id: m.ID, size: messageSize(m), pinned: m.Pinned, tool: m.Role == abi.RoleTool, call: -1, last: i}
	switch {
	case i < x.weighFrom:
	case i < len(old) && old[i].is(m):
		e.raw = old[i].raw
	default:
		e.raw = EstimateMessage(m)
	}
	e.tokens = e.raw
	e.sum = e.tokens
	if i > 0 {
		e.sum += x.entries[i-1].sum
	}
	if x.ids != nil && m.ID != "" {
		if _, taken := x.ids[m.ID]; !taken {
			x.ids[m.ID] = i
		}
	}
	for _, c := range m.ToolCalls {
		x.calls[c.ID] = i
	}
	if e.tool {
		x.answer(m, i, &e)
	}
	if m.Pinned {
		x.pinned = append(x.pinned, i)
	}
	if m.Role == abi.RoleUser && m.Visibility != abi.VisibilityInternal {
		x.user = i
	}
	if m.Role == abi.RoleAssistant {
		x.said = i
	}
	x.entries = append(x.entries, e)
}

// resum counts tokens anew from a message on.
func (x *index) resum(from int) {
	sum := int64(0)
	if from > 0 {
		sum = x.entries[from-1].sum
	}
	for i := from; i < len(x.entries); i++ {
		sum += x.entries[i].tokens
		x.entries[i].sum = sum
	}
}

// answer links a result to its call.
func (x *index) answer(m *abi.Message, i int, e *entry) {
	e.head = i - 1
	if i > 0 && x.entries[i-1].tool {
		e.head = x.entries[i-1].head
	}
	at, ok := x.calls[m.ToolCallID]
	if !ok {
		return
	}
	e.call = at
	x.entries[at].last = i
	if e.head != at {
		x.far = append(x.far, i)
	}
}

// at is the index of the message of an id, or -1.
func (x *index) at(id string) int {
	if id == "" {
		return -1
	}
	if x.ids == nil {
		return slices.IndexFunc(x.entries, func(e entry) bool { return e.id == id })
	}
	if i, ok := x.ids[id]; ok {
		return i
	}
	return -1
}

// tokens of the messages in [from, to).
func (x *index) tokens(from, to int) int64 {
	if to <= from {
		return 0
	}
	n := x.entries[to-1].sum
	if from > 0 {
		n -= x.entries[from-1].sum
	}
	return n
}

// weigh estimates messages, most of which the index knows.
func (x *index) weigh(messages []abi.Message) int64 {
	var n int64
	for i := range messages {
		if at := x.at(messages[i].ID); at >= x.weighFrom && x.entries[at].size == messageSize(&messages[i]) {
			n += x.entries[at].raw
			continue
		}
		n += EstimateMessage(&messages[i])
	}
	return n
}

// boundary is the last index in [start, limit) after which no call waits for a
// result and no result follows, or -1. A call that is never answered in the log
// counts as answered: it was interrupted.
func (x *index) boundary(start, limit int) int {
	best, open := -1, -1
	for i := start; i < limit; i++ {
		open = max(open, x.entries[i].last)
		if open <= i && (i+1 == len(x.entries) || !x.entries[i+1].tool) {
			best = i
		}
	}
	return best
}

// roundEnd is the index after the round that begins at start: calls with their
// results and whatever stands between, or one message.
func (x *index) roundEnd(start int) int {
	open := start
	for i := start; i < len(x.entries); i++ {
		open = max(open, x.entries[i].last)
		if open <= i && (i+1 == len(x.entries) || !x.entries[i+1].tool) {
			return i + 1
		}
	}
	return len(x.entries)
}

// cover is where a marker stands in a log: the messages from and to, both
// included, of which those in keep stay in the view.
type cover struct {
	from, to int
	keep     []int
}

// covered finds a marker in the log. It reports false without a marker or a summary in it, and when
// the log does not hold the marker's messages.
func (x *index) covered(m *Marker) (cover, bool) {
	if m == nil || m.masksOnly() {
		return cover{}, false
	}
	c := cover{from: x.at(m.FromID), to: x.at(m.ToID)}
	if c.from < 0 || c.to < c.from {
		return cover{}, false
	}
	if x.user >= c.from && x.user <= c.to {
		c.keep = append(c.keep, x.user)
	}
	for _, i := range x.pinned {
		if i >= c.from && i <= c.to {
			c.keep = x.appendRound(c.keep, i, &c)
		}
	}
	// A call that was thought to be interrupted may be answered later. Its result
	// is in the view then, and must not stand there alone.
	for _, i := range x.far {
		if call := x.entries[i].call; i > c.to && call >= c.from && call <= c.to {
			c.keep = x.appendRound(c.keep, call, &c)
		}
	}
	slices.Sort(c.keep)
	c.keep = slices.Compact(c.keep)
	return c, true
}

// appendRound appends a covered message, and with a call its results, and with a
// result its call and the call's other results.
func (x *index) appendRound(keep []int, i int, c *cover) []int {
	if call := x.entries[i].call; call >= c.from {
		i = call
	}
	keep = append(keep, i)
	for j := i + 1; j <= min(c.to, x.entries[i].last); j++ {
		if x.entries[j].call == i {
			keep = append(keep, j)
		}
	}
	return keep
}

// size is the estimate of a view with the marker applied.
func (x *index) size(c cover, summary int64) int64 {
	n := x.tokens(0, c.from) + summary + x.tokens(c.to+1, len(x.entries))
	for _, i := range c.keep {
		n += x.entries[i].tokens
	}
	return n
}
