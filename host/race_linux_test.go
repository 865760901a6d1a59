//go:build race

package host_test

// leakCalls is how many calls [TestNative_leak] makes: the race detector makes each take ten times as long. make test-plain makes all.
const leakCalls = 10_000
