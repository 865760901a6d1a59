package inbox

import "github.com/mortise-dev/mortise/abi"

// ring is a first-in first-out buffer that grows to depth and keeps its memory.
type ring struct {
	depth       int
	buf         []abi.Notice
	head, count int
}

func (r *ring) full() bool { return r.count >= r.depth }

// push adds n. The caller has seen that there is room.
func (r *ring) push(n *abi.Notice) {
	if r.count == len(r.buf) {
		r.grow()
	}
	at := r.head + r.count
	if at >= len(r.buf) {
		at -= len(r.buf)
	}
	r.buf[at] = *n
	r.count++
}

func (r *ring) grow() {
	buf := make([]abi.Notice, min(r.depth, max(16, 2*len(r.buf))))
	r.copyTo(buf)
	r.buf, r.head = buf, 0
}

// pop takes the oldest. The caller has seen that there is one.
func (r *ring) pop() abi.Notice {
	n := r.buf[r.head]
	r.buf[r.head] = abi.Notice{} // lets go of the payload
	r.head++
	if r.head == len(r.buf) {
		r.head = 0
	}
	r.count--
	return n
}

// drain takes all, oldest first, nil when there is none.
func (r *ring) drain() []abi.Notice {
	if r.count == 0 {
		return nil
	}
	all := make([]abi.Notice, r.count)
	first := r.copyTo(all)
	clear(r.buf[r.head : r.head+first])
	clear(r.buf[:r.count-first])
	r.head, r.count = 0, 0
	return all
}

// copyTo copies what is queued to the start of out and returns how much of it lay
// before the end of the buffer.
func (r *ring) copyTo(out []abi.Notice) int {
	first := copy(out, r.buf[r.head:min(r.head+r.count, len(r.buf))])
	copy(out[first:], r.buf[:r.count-first])
	return first
}
