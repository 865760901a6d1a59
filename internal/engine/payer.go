package engine

import (
	"io"
)

// payer pays for the host's work, and ends the guest when it must not continue.
type payer interface{ Spend(units int) }

// MeteredReader and meteredWriter take fuel for what a guest reads and writes.
type MeteredReader struct {
	Payer payer
	R     io.Reader
}

// Read implements io.Reader. It reads at most a chunk. A random byte takes four
// times as long as one that is copied.
func (m MeteredReader) Read(b []byte) (int, error) {
	b = b[:min(len(b), HostChunk)]
	m.Payer.Spend(len(b)/16 + 1)
	return m.R.Read(b)
}
