//go:build !race

package host_test

// leakCalls is how many calls [TestNative_leak] makes.
const leakCalls = 100_000
