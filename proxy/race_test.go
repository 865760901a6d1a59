//go:build race

package proxy_test

// underRace is whether the race detector is on, which adds to memory: make test-plain measures it without.
const underRace = true
