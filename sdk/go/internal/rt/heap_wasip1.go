//go:build wasip1

package rt

import "runtime"

// headroom is how much heap a guest starts with, in bytes. A host that puts
// memory back after each call does so to the state after initialisation, and
// has to make a new instance when a call made memory grow. With this much room
// most calls do not. Untouched pages cost the host nothing.
const headroom = 4 << 20

var ballast []byte

// The room is taken and given back to the collector, so that it is free heap.
func init() {
	ballast = make([]byte, headroom)
	ballast = nil
	runtime.GC()
}
