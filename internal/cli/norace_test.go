//go:build !race

package cli_test

import "math"

// largest bounds the recordings that are run, in bytes.
const largest = math.MaxInt64
