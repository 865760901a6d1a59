package mailbox

import "sort"

// ring are the last events of a stream, oldest first. It grows as they come.
type ring struct {
	slots []Event
	// at is the place of the oldest one; there are n of them, with so many bytes.
	at, n, bytes int
}

// size is what an event counts for, in bytes.
func (e Event) size() int { return len(e.Type) + len(e.Data) }

// nth is an event, counted from the oldest.
func (r *ring) nth(i int) Event { return r.slots[(r.at+i)%len(r.slots)] }

// push appends an event.
func (r *ring) push(e Event) {
	if r.n == len(r.slots) {
		slots := make([]Event, max(2*r.n, 8))
		for i := range r.n {
			slots[i] = r.nth(i)
		}
		r.slots, r.at = slots, 0
	}
	r.slots[(r.at+r.n)%len(r.slots)] = e
	r.n, r.bytes = r.n+1, r.bytes+e.size()
}

// pop takes the oldest event out. There is one.
func (r *ring) pop() Event {
	e := r.slots[r.at]
	r.slots[r.at] = Event{}
	r.at, r.n, r.bytes = (r.at+1)%len(r.slots), r.n-1, r.bytes-e.size()
	return e
}

// place counts the events up to a number.
func (r *ring) place(seq uint64) int {
	return sort.Search(r.n, func(i int) bool { return r.nth(i).Seq > seq })
}

// sizeAfter are the bytes of the events after a number.
func (r *ring) sizeAfter(seq uint64) (bytes int) {
	for i := r.place(seq); i < r.n; i++ {
		bytes += r.nth(i).size()
	}
	return bytes
}
