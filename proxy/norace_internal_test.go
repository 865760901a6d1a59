//go:build !race

package proxy

const UnderRace = false
