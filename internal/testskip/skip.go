package testskip

import (
	"os"
	"testing"
)

// Missing skips a test that needs something which a development machine may lack. Where the environment variable CI is
// set it fails the test: a test that CI skips shows nothing, and nobody would see it.
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatalf("must not be missing where CI is set: "+format, args...)
	}
	tb.Skipf("SKIPPED: "+format, args...)
}
