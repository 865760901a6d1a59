//go:build race

package cli_test

// largest bounds the recordings that are run, in bytes: the race detector makes the large ones take ten minutes.
const largest = 256 << 10
