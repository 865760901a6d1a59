//go:build race

package proxy

// UnderRace is whether the race detector is on, which adds to memory: make test-plain measures it without.
const UnderRace = true
