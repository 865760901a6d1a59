// Package unsent is where package plugin tells the codec how messages are read that the
// host did not send with an event.
package unsent

// Read reads the messages from from (included) to to (excluded) of the event of this
// call and returns how many bytes they are, -1 when they are not there. It reads
// nothing when dst is too short. Read is nil where there is no host.
var Read func(dst []byte, from, to int) int64

// Calls is the number of this call. Messages of another one cannot be read any more.
var Calls int

// Room is memory that this call may take messages in. It is not used again.
var Room []byte

// Take returns n bytes of the room, or others.
func Take(n int) []byte {
	if n > len(Room) {
		return make([]byte, n)
	}
	taken := Room[:n:n]
	Room = Room[n:]
	return taken
}
