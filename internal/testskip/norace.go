//go:build !race

package testskip

// UnderRace reports whether the race detector is on.
const UnderRace = false
