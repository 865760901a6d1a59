package testskip

import (
	"fmt"
	"os"
	"testing"
)

// listed names a file to which each test that is skipped adds a line, since go test says nothing of them: make test and
// make test-race print it.
const listed = "MORTISE_SKIPPED"

// Missing skips a test that needs something which a development machine may lack. Where the environment variable CI is
// set it fails the test: what CI does not run never runs.
func Missing(tb testing.TB, format string, args ...any) {
	tb.Helper()
	if os.Getenv("CI") != "" {
		tb.Fatalf("must not be missing where CI is set: "+format, args...)
		return // a test double continues
	}
	Skip(tb, format, args...)
}

// Skip skips a test, and says so where it is seen.
func Skip(tb testing.TB, format string, args ...any) {
	tb.Helper()
	why := fmt.Sprintf(format, args...)
	if path := os.Getenv(listed); path != "" {
		if err := list(path, tb.Name()+": "+why+"\n"); err != nil {
			tb.Fatal(err)
		}
	}
	tb.Skip("SKIPPED: " + why)
}

// Long skips a test under go test -short, as make test runs it: one that kills processes or servers many times, fills a store, repeats
// a schedule for minutes, runs a suite once more in another configuration, or measures real recordings. make check runs it.
func Long(tb testing.TB) {
	tb.Helper()
	if testing.Short() {
		Skip(tb, "takes long: make check runs it")
	}
}

// Plain skips a test under the race detector, which finds nothing in it that it does not find elsewhere, and takes minutes. make test-plain
// runs it.
func Plain(tb testing.TB) {
	tb.Helper()
	if UnderRace {
		Skip(tb, "takes long under the race detector: make test-plain runs it")
	}
}

// Rounds returns how often a test repeats something: few times under go test -short, as make test and make test-race run it, and under the
// race detector. make test-plain has all.
func Rounds(all, few int) int {
	if UnderRace || testing.Short() {
		return few
	}
	return all
}

// list adds a line to a file. Several processes may do so at once.
func list(path, line string) error {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	if _, err := f.WriteString(line); err != nil {
		_ = f.Close()
		return err
	}
	return f.Close()
}
