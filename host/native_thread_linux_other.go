//go:build linux && !amd64

package host

// thread is not known here.
func thread() uintptr { return 0 }
