package background

// gate is a lock that may be held while its holder waits for something else. It
// is a channel and not a mutex so that testing/synctest sees who waits for it as
// waiting.
type gate chan struct{}

func newGate() gate { return make(gate, 1) }

func (g gate) lock()   { g <- struct{}{} }
func (g gate) unlock() { <-g }
