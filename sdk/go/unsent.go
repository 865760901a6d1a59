package mortise

import (
	"math"
	"unsafe"

	"github.com/mortise-dev/mortise/sdk/go/internal/unsent"
)

// Bounds on how messages are read that the host did not send.
const (
	// fewChunks is after how many readings of some all are read.
	fewChunks = 12
	// ahead is how many more are read at once when they are read one after the other.
	ahead = 2
	// large is how many bytes are much.
	large = 64 << 10
)

// chunk is a range of messages that was read.
type chunk struct {
	from, to int
	at       uint32 // of the first, as views count
	s        string
}

// unsentMessages makes the views of messages of which only the index came: see
// [Hook.LazyMessages].
func (d *Decoder) unsentMessages(index string) Messages {
	if index == "" || d.err != nil {
		return nil
	}
	n, size := len(index)/MessageMarkSize, uint64(0)
	for i := range n {
		size += uint64(markedSize(index, i))
	}
	if len(index)%MessageMarkSize != 0 || n >= 1<<placeBits || size > math.MaxUint32 {
		d.fail(d.pos, "an index that is none of messages")
		return nil
	}
	shared, views := newViews(n)
	shared.marks, shared.unsent, shared.call = index, true, unsent.Calls
	views.spread(shared)
	return views
}

// fetch is the encoded message, which the host is asked for if need be.
func (l *messageList) fetch(v MessageView) string {
	i := v.index()
	for k := len(l.chunks) - 1; k >= 0; k-- {
		if c := &l.chunks[k]; c.from <= i && i < c.to {
			return c.s[v.at-c.at:][:markedSize(l.marks, i)]
		}
	}
	if unsent.Read == nil || l.call != unsent.Calls {
		v.keep(&DecodeError{What: "messages of an event can be read while the host's call lasts, and not here"})
		return ""
	}
	c := l.next(i, v.at)
	if !c.read(l.size(c.from, c.to)) {
		v.keep(&DecodeError{What: "the host's index is not that of its messages"})
		return ""
	}
	l.chunks = append(l.chunks, c)
	return c.s[v.at-c.at:][:markedSize(l.marks, i)]
}

// read reads the chunk, which has that size if the index does not lie. Before it takes
// much memory it asks.
func (c *chunk) read(size int) bool {
	if size > large && unsent.Read(nil, c.from, c.to) != int64(size) {
		return false
	}
	data := unsent.Take(size)
	if unsent.Read(data, c.from, c.to) != int64(size) {
		return false
	}
	c.s = unsafe.String(unsafe.SliceData(data), size) // nothing writes to it any more
	return true
}

// next returns what to read for message i, which stands at at. Most hooks read few messages,
// or one after the other, forwards or backwards.
func (l *messageList) next(i int, at uint32) chunk {
	if len(l.chunks) >= fewChunks {
		l.chunks = l.chunks[:0]
		return chunk{from: 0, to: len(l.marks) / MessageMarkSize}
	}
	c := chunk{from: i, to: i + 1, at: at}
	if n := len(l.chunks); n > 0 {
		last := &l.chunks[n-1]
		switch more := ahead * (last.to - last.from); i {
		case last.to:
			c.to = min(i+more, len(l.marks)/MessageMarkSize)
		case last.from - 1:
			c.from = max(c.to-more, 0)
			c.at -= uint32(l.size(c.from, i))
		}
	}
	return c
}

// size is how long the messages from from to to are together.
func (l *messageList) size(from, to int) int {
	n := 0
	for i := from; i < to; i++ {
		n += markedSize(l.marks, i)
	}
	return n
}
