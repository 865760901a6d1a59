package guest

import (
	"sync/atomic"
	"unsafe"

	"github.com/mortise-dev/mortise/abi"
)

// Sizes of tapes in bytes: the first of a thread, and the others.
const (
	firstTape = 8 << 10
	tapeSize  = 32 << 10
)

// tape holds encodings of the messages of a thread, one behind the other as they came,
// so that what an event shows is a few pieces of memory, and not one for each message.
// What stands on it never changes. A tape is dropped as a whole. A caller that still reads
// from it keeps it alive. The nil tape is empty.
type tape struct {
	thread string
	data   []byte
	// ends are where the encodings end on data, marks what the index says of them.
	ends  []int
	marks []byte
	// shown are the messages as they were, and own are copies that share nothing that can
	// change. blocks are those of the copies' contents, one message's behind the other's,
	// and blockEnds where each message's end.
	shown, own []abi.Message
	blocks     []abi.ContentBlock
	blockEnds  []int
	// plain tells of each message that texts and numbers are all that it holds.
	plain []bool
	used  atomic.Bool
	place int // in the ring
}

func (t *tape) use() {
	if !t.used.Load() {
		t.used.Store(true)
	}
}

// append puts an encoding, for which there is room, at the end of the tape. own is
// what copyMessage made of the message; its content is copied here.
func (t *tape) append(message, own *abi.Message, encoded, mark []byte) (at int) {
	t.data = append(t.data, encoded...)
	t.ends = append(t.ends, len(t.data))
	t.marks = append(t.marks, mark...)
	first := len(t.blocks)
	t.blocks = append(t.blocks, own.Content...)
	own.Content = t.blocks[first:len(t.blocks):len(t.blocks)]
	t.blockEnds = append(t.blockEnds, len(t.blocks))
	t.shown, t.own = append(t.shown, *message), append(t.own, *own)
	t.plain = append(t.plain, len(own.ToolCalls) == 0 && own.Metadata == nil)
	return len(t.own) - 1
}

// before is where the one before ends, which is where the one at at begins.
func before(ends []int, at int) int {
	if at == 0 {
		return 0
	}
	return ends[at-1]
}

// piece is n encodings from at on.
func (t *tape) piece(at, n int) piece {
	start := before(t.ends, at)
	return piece{
		n: n, data: t.data[start:t.ends[at+n-1]], start: start, ends: t.ends[at : at+n],
		marks: t.marks[at*abi.MessageMarkSize : (at+n)*abi.MessageMarkSize],
	}
}

// run returns how many messages have the encodings that stand on the tape from at on. Most
// are the very same as before, and then a glance is enough: a text does not change, so
// one at the same place and of the same length is the same. What can be changed in place, the
// blocks of the content, is looked at too, and more of a message that is not plain.
func (t *tape) run(at int, messages []abi.Message) int {
	if t == nil {
		return 0
	}
	n := min(len(messages), len(t.own)-at)
	messages = messages[:n]
	glance := bytesOf(t.shown[at:at+n]) == bytesOf(messages)
	block := before(t.blockEnds, at)
	for i := range messages {
		end := t.blockEnds[at+i]
		same := (glance || bytesOf(t.shown[at+i:][:1]) == bytesOf(messages[i:][:1])) &&
			t.plain[at+i] && bytesOf(t.blocks[block:end]) == bytesOf(messages[i].Content)
		if !same && !sameMessage(&t.own[at+i], &messages[i]) {
			return i
		}
		block = end
	}
	return n
}

// bytesOf are values as they stand in memory: pointers, lengths and numbers. Values whose
// bytes are equal are equal, as long as what they point to is kept alive, so that nothing
// else comes to stand there; not so the other way round.
func bytesOf[T any](values []T) string {
	var one T
	return unsafe.String((*byte)(unsafe.Pointer(unsafe.SliceData(values))), uintptr(len(values))*unsafe.Sizeof(one))
}

// tapeFor returns a tape with room for n bytes. Where there is none it makes one, in
// the place of such that were not used since the hand came by.
func (m *messageCache) tapeFor(thread string, n int) *tape {
	t := m.open[thread]
	if t != nil && cap(t.data)-len(t.data) >= n {
		return t
	}
	size := tapeSize
	if t == nil {
		size = firstTape
	}
	size = max(size, n)
	for len(m.ring) > 0 && m.bytes+size > maxCachedBytes {
		m.dropOne()
	}
	t = &tape{thread: thread, data: make([]byte, 0, size), place: len(m.ring)}
	m.ring = append(m.ring, t)
	m.open[t.thread] = t
	m.bytes += size
	return t
}

// dropOne drops the next tape that was not used since the hand came by.
func (m *messageCache) dropOne() {
	for {
		m.hand %= len(m.ring)
		t := m.ring[m.hand]
		if !t.used.Swap(false) {
			m.drop(t)
			return
		}
		m.hand++
	}
}

// drop forgets a tape and what is on it.
func (m *messageCache) drop(t *tape) {
	for i := range t.shown {
		key := messageKey{t.thread, t.shown[i].ID}
		if m.entries[key] == (entry{t, i}) {
			delete(m.entries, key)
		}
	}
	if m.open[t.thread] == t {
		delete(m.open, t.thread)
	}
	last := len(m.ring) - 1
	m.ring[t.place] = m.ring[last]
	m.ring[t.place].place = t.place
	m.ring[last] = nil
	m.ring = m.ring[:last]
	m.count -= len(t.own)
	m.bytes -= cap(t.data) + entryOverhead*len(t.own)
}
