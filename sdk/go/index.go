package mortise

import "unsafe"

// markedSize is the length of the encoding of message i, as its mark says it.
func markedSize(marks string, i int) int {
	m := marks[i*MessageMarkSize:][:MessageMarkSize]
	return int(uint32(m[0]) | uint32(m[1])<<8 | uint32(m[2])<<16 | uint32(m[3])<<24)
}

// messageIndex reads the index of the messages that follow.
func (d *Decoder) messageIndex() string {
	at := d.pos
	switch d.code() {
	case 0xc4:
		return d.take(d.be(1), at)
	case 0xc5:
		return d.take(d.be(2), at)
	case 0xc6:
		return d.take(d.be(4), at)
	case 0xc0:
		return ""
	}
	d.wrong(at, "binary")
	return ""
}

// messages reads an array of messages and leaves them unread, but for where each of
// them ends. The index of the host has that, if it is one of these messages.
func (d *Decoder) messages(index string) Messages {
	n, ok := d.OpenArray()
	if !ok {
		return nil
	}
	shared, views := newViews(n)
	shared.s, shared.marks = d.s, index
	end := views.place(shared, d.pos)
	if end < 0 {
		shared.marks = d.measured(n)
		if end = views.place(shared, d.pos); end < 0 {
			d.fail(d.pos, "too many messages")
			return nil
		}
	}
	d.pos = end
	d.Close()
	return views
}

// place fills in where messages are that begin at pos, and returns where they end. It
// returns -1 when the marks are not those of as many messages that are all there.
func (s Messages) place(shared *messageList, pos int) int {
	if len(shared.marks) != len(s)*MessageMarkSize || len(s) >= 1<<placeBits {
		return -1
	}
	rest := len(shared.s) - pos
	for i := range s {
		size := markedSize(shared.marks, i)
		if size > rest {
			return -1
		}
		s[i] = shared.view(i, pos)
		pos += size
		rest -= size
	}
	return pos
}

// spread fills in where messages are that begin at 0 and that were not sent.
func (s Messages) spread(shared *messageList) {
	pos := 0
	for i := range s {
		s[i] = shared.view(i, pos)
		pos += markedSize(shared.marks, i)
	}
}

// view is message i, which stands at pos.
func (l *messageList) view(i, pos int) MessageView {
	v := MessageView{list: l, at: uint32(pos), place: uint32(i)}
	if mark := l.marks[i*MessageMarkSize+4]; int(mark) < len(roles) {
		v.place |= uint32(mark) << placeBits
	}
	return v
}

// measured makes the marks of messages, which come without, but for their roles.
func (d *Decoder) measured(n int) string {
	marks := make([]byte, n*MessageMarkSize)
	pos := d.pos
	for i := range n {
		end := measure(d.s, pos)
		if end < 0 {
			d.pos = pos
			d.Skip() // reports the fault
			d.fail(pos, "a message that cannot be measured")
			return ""
		}
		m, size := marks[i*MessageMarkSize:], uint32(end-pos)
		m[0], m[1], m[2], m[3] = byte(size), byte(size>>8), byte(size>>16), byte(size>>24)
		pos = end
	}
	return unsafe.String(unsafe.SliceData(marks), len(marks)) // nothing writes to them any more
}
